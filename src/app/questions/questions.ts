import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf, RingneckError } from '../../base/errors.ts';
import type { Columns } from '../../warehouse/readers/prepared-queries.ts';
import { quoteText, type Value } from '../../warehouse/sql.ts';

export type Parameters = Readonly<Record<string, Value>>;

export interface Asked {
  id: number;
  name: string;
  parameters: Parameters;
}

/** Has the process let go of the file, until it is asked again. */
export interface LetGo {
  letGo: true;
}

export type Answered = { id: number; columns: Columns } | { id: number; error: string };

interface Waiting {
  take(columns: Columns): void;
  fail(error: unknown): void;
}

const CHILD = new URL(import.meta.url.endsWith('.ts') ? '../../../dist/src/app/questions/child.js' : './child.js', import.meta.url);
const FOLDER = fileURLToPath(new URL('../../../schema/queries/console/', import.meta.url));
/** Answers that are kept for who asks the same of the same file. */
const KEPT_ROWS = 200_000;
/** How soon a file that was replaced is let go: it may be the last that has somebody who was erased. */
const LOOK_MS = 1_000;
const HOUR_MS = 3_600_000;

/**
 * The queries of `schema/queries/console/` over a copy for readers, by one process that lives as long as this and is begun anew where it
 * ends. What was asked before of the same file is answered from memory.
 */
export class Questions {
  /** The file that is asked. */
  readonly path: string;
  readonly #waiting = new Map<number, Waiting>();
  readonly #kept = new Map<string, { rows: number; columns: Promise<Columns> }>();
  #rows = 0;
  #stamp: string | undefined;
  readonly #now: () => number;
  readonly #idleMs: number;
  #askedAt = 0;
  #child: ChildProcess | undefined;
  #timer: NodeJS.Timeout | undefined;
  #next = 0;

  /**
   * @param path the snapshot, or the file of one person
   * @param now milliseconds since the epoch
   * @param idleMs for so long the process is kept while nobody asks
   */
  constructor(path: string, now: () => number = Date.now, idleMs = Number.POSITIVE_INFINITY) {
    this.path = path;
    this.#now = now;
    this.#idleMs = idleMs;
  }

  /** Changes with each publication, and each hour, for what is answered depends on which day it is; undefined where there is no file. */
  get stamp(): string | undefined {
    const stats = statSync(this.path, { bigint: true, throwIfNoEntry: false });
    return stats && `${stats.ino.toString(36)}-${stats.mtimeNs.toString(36)}-${Math.floor(this.#now() / HOUR_MS).toString(36)}`;
  }

  /** @throws RingneckError with what DuckDB says, or that there is no snapshot */
  async ask(name: string, parameters: Parameters = {}): Promise<Columns> {
    this.#forgetOther();
    const key = `${name} ${JSON.stringify(parameters)}`;
    const kept = this.#kept.get(key);
    if (kept) return kept.columns;
    const entry = { rows: 0, columns: this.#askChild(name, parameters) };
    this.#kept.set(key, entry);
    try {
      const columns = await entry.columns;
      entry.rows = Object.values(columns)[0]?.length ?? 0;
      if (this.#kept.get(key) === entry) this.#makeRoom(entry.rows);
      return columns;
    } catch (error) {
      if (this.#kept.get(key) === entry) this.#kept.delete(key);
      throw error;
    }
  }

  /** A query as somebody may run it: with its parameters written out, without its first line, which says what it is for. */
  sqlOf(name: string, parameters: Parameters): string {
    const [, ...lines] = readFileSync(join(FOLDER, `${name}.sql`), 'utf8')
      .trimEnd()
      .split('\n');
    return lines.join('\n').replace(/\$(\w+)/g, (parameter, key: string) => {
      const value = parameters[key];
      if (value === undefined) return parameter;
      return typeof value === 'string' ? quoteText(value) : String(value);
    });
  }

  /** Resolves once nobody has the file open any more. */
  async close(): Promise<void> {
    const child = this.#child;
    child?.kill('SIGKILL');
    this.#end(new RingneckError('the console is closing'));
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.ref();
    await once(child, 'exit');
  }

  #askChild(name: string, parameters: Parameters): Promise<Columns> {
    const id = ++this.#next;
    this.#askedAt = this.#now();
    return new Promise((take, fail) => {
      this.#waiting.set(id, { take, fail });
      const child = this.#child ?? this.#start();
      // Who waits for an answer is not to end before it.
      child.channel?.ref();
      child.send({ id, name, parameters } satisfies Asked, error => error && this.#settle({ id, error: messageOf(error) }));
    });
  }

  #start(): ChildProcess {
    const child = fork(CHILD, [FOLDER, this.path], { execArgv: [], stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    this.#child = child;
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
    child.on('message', (answered: Answered) => this.#settle(answered));
    child.on('error', error => this.#end(error, child));
    child.on('exit', () => this.#end(new RingneckError('the process that reads the snapshot has ended: try again'), child));
    child.unref();
    child.channel?.unref();
    return child;
  }

  #settle(answered: Answered): void {
    const waiting = this.#waiting.get(answered.id);
    this.#waiting.delete(answered.id);
    if (!this.#waiting.size) this.#child?.channel?.unref();
    if ('columns' in answered) waiting?.take(answered.columns);
    else waiting?.fail(new RingneckError(answered.error));
  }

  #end(error: unknown, child = this.#child): void {
    if (child !== this.#child) return;
    this.#child = undefined;
    clearInterval(this.#timer);
    for (const { fail } of this.#waiting.values()) fail(error);
    this.#waiting.clear();
  }

  #look(): void {
    const isIdle = !this.#waiting.size && Math.abs(this.#now() - this.#askedAt) >= this.#idleMs;
    if (isIdle) void this.close();
    else if (this.#isOther()) this.#child?.send({ letGo: true } satisfies LetGo, () => undefined);
  }

  /** A file that cannot be looked at may be another one: whoever asks is told what is wrong with it. */
  #isOther(): boolean {
    try {
      return this.#forgetOther();
    } catch {
      return true;
    }
  }

  /** Whether what was answered before is of another file, or of another hour. */
  #forgetOther(): boolean {
    const { stamp } = this;
    if (stamp === this.#stamp) return false;
    this.#stamp = stamp;
    this.#kept.clear();
    this.#rows = 0;
    return true;
  }

  #makeRoom(rows: number): void {
    this.#rows += rows;
    for (const [key, entry] of this.#kept) {
      if (this.#rows <= KEPT_ROWS) return;
      this.#kept.delete(key);
      this.#rows -= entry.rows;
    }
  }
}
