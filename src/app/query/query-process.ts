import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { environment } from '../../base/config.ts';
import { messageOf, RingneckError, TryLaterError } from '../../base/errors.ts';
import { createFailure } from '../../base/failure.ts';
import { type Frame, type QueryRequest, readFrames } from './frames.ts';
import { OVER_MEMORY } from './memory-watch.ts';

export interface Limits {
  /** What DuckDB may have, in its own words (`1GB`), and in bytes. */
  memory: { text: string; bytes: number };
  seconds: number;
  /** What is said to whoever reaches one: how more is allowed, or what else helps. */
  more: { memory: string; seconds: string };
}

/** What a query's process is told of ours: what time and language it is in, where libraries lie, and nothing that is secret. */
const TOLD = ['TZ', 'LANG', 'LC_ALL', 'LD_LIBRARY_PATH', 'SystemRoot'];

const CHILD = new URL(import.meta.url.endsWith('.ts') ? '../../../dist/src/app/query/child.js' : './child.js', import.meta.url);

type Question = Omit<QueryRequest, 'memoryLimit'>;

/** A process that answers one question: in an empty folder, which is also its home. It has nothing open until it is asked. */
export class QueryProcess {
  readonly #limits: Limits;
  readonly #folder = mkdtempSync(join(tmpdir(), 'ringneck-sql-'));
  readonly #child: ChildProcess;
  readonly #begun: Promise<unknown>;
  /** Rejects when the process cannot be started. */
  readonly #failed: Promise<never>;
  readonly #endNow = () => {
    this.#child.kill('SIGKILL');
    this.#removeFolder();
  };

  constructor(limits: Limits) {
    this.#limits = limits;
    const folder = this.#folder;
    const told = Object.fromEntries(TOLD.flatMap(name => (environment[name] === undefined ? [] : [[name, environment[name]]])));
    this.#child = fork(CHILD, [], {
      cwd: folder,
      env: { ...told, HOME: folder, TMPDIR: folder },
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.#begun = once(this.#child, 'message');
    this.#begun.catch(() => undefined);
    this.#failed = once(this.#child, 'error').then(([error]) => {
      throw new RingneckError(`the process for the query cannot be started: ${messageOf(error)}`);
    });
    this.#failed.catch(() => undefined);
    process.once('exit', this.#endNow);
  }

  get isAlive(): boolean {
    return isAlive(this.#child);
  }

  /**
   * Asks it, and ends it. What it answers is handed on frame by frame, as fast as `take` takes it.
   * @throws RingneckError with what DuckDB says, or how the process ended
   */
  async ask(question: Question, take: (frame: Frame) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { memory } = this.#limits;
    const stopped = createFailure();
    const stop = () => stopped.fail(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    const timer = this.#limitTime(stopped.fail);
    try {
      // A process that died before it was asked is told by the end of its pipe.
      this.#child.send({ question: { ...question, memoryLimit: memory.text }, memoryBytes: memory.bytes }, () => undefined);
      await Promise.race([stopped.failed, this.#failed, this.#takeAll(take)]);
    } finally {
      signal.removeEventListener('abort', stop);
      timer.clear();
      await this.end();
    }
  }

  /** It reads only: there is nothing that a kill could harm. */
  async end(): Promise<void> {
    this.#child.kill('SIGKILL');
    await Promise.race([ended(this.#child), this.#failed.catch(() => undefined)]);
    this.#removeFolder();
    process.off('exit', this.#endNow);
  }

  /** How long it takes to start is not the query's time. */
  #limitTime(fail: (error: unknown) => void): { clear(): void } {
    const { seconds, more } = this.#limits;
    const stop = () => fail(new RingneckError(`the query was stopped after ${seconds} s: ${more.seconds}`));
    let timer: NodeJS.Timeout | undefined;
    this.#begun.then(() => {
      timer = setTimeout(stop, seconds * 1000);
    }, fail);
    return { clear: () => clearTimeout(timer) };
  }

  async #takeAll(take: (frame: Frame) => Promise<void>): Promise<void> {
    const child = this.#child;
    for await (const frame of readFrames(child.stdio[3] as Readable)) {
      if (frame.kind === 'done') return;
      if (frame.kind === 'error') throw errorOf(frame.error, this.#limits);
      await take(frame);
    }
    await ended(child);
    if (child.signalCode === OVER_MEMORY)
      throw new RingneckError(`the query was stopped: it took far more than ${this.#limits.memory.text} of memory`);
    const how = child.signalCode ?? `exit code ${child.exitCode}`;
    throw new RingneckError(`the query ended its own process (${how}); warehouse and pipeline are not concerned`);
  }

  #removeFolder(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const isAlive = (child: ChildProcess) => child.exitCode === null && child.signalCode === null;

async function ended(child: ChildProcess): Promise<void> {
  if (isAlive(child)) await once(child, 'exit');
}

function errorOf({ message, exitCode }: { message: string; exitCode: number }, { more }: Limits): RingneckError {
  if (exitCode === 75) return new TryLaterError(message);
  if (/^Out of Memory Error/.test(message)) {
    return new RingneckError(`${message.split('\n', 1)[0]} (${more.memory})`);
  }
  return new RingneckError(message, exitCode);
}
