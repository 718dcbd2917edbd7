import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { COMMON_FILES, type CommonFile, type CommonStore } from '../base/common-files.ts';
import { TryLaterError } from '../base/errors.ts';
import { realPath, removeFile, writeFileAtomically } from '../base/files.ts';
import { ANSWER_MS, type Catalogue, type CataloguePlace } from './catalogue.ts';
import type { Answered, Asked, ThreadData } from './files-thread.ts';

const THREAD = new URL(import.meta.url.endsWith('.ts') ? '../../dist/src/machines/files-thread.js' : './files-thread.js', import.meta.url);

/** Of a statement and a new connection before it. */
const MOST_MS = 2 * ANSWER_MS;

/** The row of the lease stays as it is until the statement is through: who takes the lease comes before it or after it. */
const OURS = 'SELECT 1 FROM ringneck.lease WHERE token = $1 FOR SHARE';
/** Of one that was given up the network may still bring the statement, after later ones: it changes nothing then. */
const WRITE = `WITH ours AS (${OURS}) INSERT INTO ringneck.files AS held (name, content, changed, token, number) SELECT $2, $3, now(), $1, $4 FROM ours
  ON CONFLICT (name) DO UPDATE SET content = excluded.content, changed = excluded.changed, token = excluded.token, number = excluded.number
  WHERE held.token <> excluded.token OR held.number < excluded.number`;

/**
 * The common files in the catalogue, written by who holds the lease alone. Whoever writes a token has no other word for it than that the call
 * returns: it waits for Postgres, and with it the process, some milliseconds at each change of a token.
 */
export class CommonFiles implements CommonStore {
  readonly #token: string;
  readonly #place: CataloguePlace;
  readonly #onLost: () => void;
  #thread: { worker: Worker; port: MessagePort; flag: Int32Array } | undefined;
  #asked = 0;
  readonly #ends: (() => void)[] = [];

  /** @param onLost the lease is somebody else's by now */
  constructor(place: CataloguePlace, token: string, onLost: () => void) {
    this.#place = place;
    this.#token = token;
    this.#onLost = onLost;
  }

  write(name: CommonFile, content: string): void {
    this.#run(name, content);
  }

  /** @returns the mark of that, see `readRemovals` */
  remove(name: CommonFile): string {
    // That it was there stays known: a machine that comes later has none of before.
    this.#run(name, null);
    return markOf(this.#token, this.#asked);
  }

  /** Has something else end with it. */
  whenClosed(end: () => void): void {
    this.#ends.push(end);
  }

  close(): void {
    for (const end of this.#ends.splice(0)) end();
    this.#endThread();
  }

  #endThread(): void {
    void this.#thread?.worker.terminate();
    this.#thread = undefined;
  }

  #run(name: CommonFile, content: string | null): void {
    this.#thread ??= this.#start();
    const { port, flag } = this.#thread;
    const id = ++this.#asked;
    Atomics.store(flag, 0, 0);
    port.postMessage({ id, sql: WRITE, values: [this.#token, name, content, id] } satisfies Asked);
    const until = performance.now() + MOST_MS;
    for (let left = MOST_MS; left > 0; left = until - performance.now()) {
      Atomics.wait(flag, 0, 0, left);
      Atomics.store(flag, 0, 0);
      for (let got = receiveMessageOnPort(port); got; got = receiveMessageOnPort(port)) {
        const answered = got.message as Answered;
        // Of one that was given up before.
        if (answered.id !== id) continue;
        if ('error' in answered) throw new TryLaterError(`${name} cannot be written to the lake’s catalogue: ${answered.error}`);
        if (answered.rows === 1) return;
        this.#onLost();
        throw new TryLaterError(`${name} was not written: another machine has taken the lake`);
      }
    }
    // Nothing is known of it: the next has a connection of its own.
    this.#endThread();
    throw new TryLaterError(`${name} cannot be written to the lake’s catalogue: no answer in ${MOST_MS / 1000} s`);
  }

  #start() {
    const { port1: port, port2 } = new MessageChannel();
    const flag = new Int32Array(new SharedArrayBuffer(4));
    const workerData: ThreadData = { place: this.#place, port: port2, flag };
    const worker = new Worker(THREAD, { workerData, transferList: [port2], execArgv: [], stdout: false, stderr: false });
    worker.on('error', () => this.#endThread());
    worker.unref();
    port.unref();
    return { worker, port, flag };
  }
}

/** The common files as the catalogue has them: null where one was removed; one that never was is not in it. */
export async function readCommonFiles(catalogue: Catalogue): Promise<Map<CommonFile, string | null>> {
  const rows = await catalogue.query<{ name: CommonFile; content: string | null }>('SELECT name, content FROM ringneck.files');
  return new Map(rows.filter(({ name }) => COMMON_FILES.includes(name)).map(({ name, content }) => [name, content]));
}

/** When each file that is no more was removed: a mark that is another one each time. */
export async function readRemovals(catalogue: Catalogue): Promise<Map<CommonFile, string>> {
  const rows = await catalogue.query<{ name: CommonFile; token: string; number: string }>(
    'SELECT name, token, number FROM ringneck.files WHERE content IS NULL',
  );
  return new Map(rows.map(({ name, token, number }) => [name, markOf(token, number)]));
}

const markOf = (token: string, number: string | number) => `${token} ${number}`;

/** Leaves nothing in the table of what the files held before. */
export const rewriteCommonFiles = (catalogue: Catalogue) => catalogue.query('VACUUM (FULL) ringneck.files');

/** Of which common files a folder has others than the catalogue. */
export function listDiffering(folder: string, common: ReadonlyMap<CommonFile, string | null>): CommonFile[] {
  return COMMON_FILES.filter(name => {
    const path = join(folder, name);
    return common.has(name) && existsSync(path) && readFileSync(path, 'utf8') !== common.get(name);
  });
}

/** Has a folder hold what the catalogue holds: that is newer wherever they differ, for it is written first. */
export function pullCommonFiles(folder: string, common: ReadonlyMap<CommonFile, string | null>): void {
  for (const [name, content] of common) {
    const path = join(folder, name);
    if (content === null) removeFile(path);
    else if (!existsSync(path) || readFileSync(path, 'utf8') !== content) writeFileAtomically(realPath(path), content);
  }
}

/** Brings what a folder holds, and the catalogue never had, into that. */
export function pushCommonFiles(folder: string, common: ReadonlyMap<CommonFile, string | null>, files: CommonStore): void {
  for (const name of COMMON_FILES) {
    const path = join(folder, name);
    if (!common.has(name) && existsSync(path)) files.write(name, readFileSync(path, 'utf8'));
  }
}
