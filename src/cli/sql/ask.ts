import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { environment } from '../../base/config.ts';
import { RingneckError, TryLaterError } from '../../base/errors.ts';
import { type Frame, type QueryRequest, readFrames } from './frames.ts';
import { OVER_MEMORY } from './memory-watch.ts';

export interface Limits {
  /** What DuckDB may have, in its own words (`1GB`), and in bytes. */
  memory: { text: string; bytes: number };
  seconds: number;
}

/** A process that answers one question. */
export interface Reader {
  /**
   * Asks it, and ends it. What it answers is handed on frame by frame, as fast as `take` takes it.
   * @throws RingneckError with what DuckDB says, or how the process ended
   */
  ask(question: Omit<QueryRequest, 'memoryLimit'>, take: (frame: Frame) => Promise<void>, signal: AbortSignal): Promise<void>;
  isAlive(): boolean;
  end(): Promise<void>;
}

/** What a query's process is told of ours: what time and language it is in, where libraries lie, and nothing that is secret. */
const TOLD = ['TZ', 'LANG', 'LC_ALL', 'LD_LIBRARY_PATH', 'SystemRoot'];

/** Starts a process that will answer a question: in an empty folder, which is also its home. It has nothing open until it is asked. */
export function startReader(limits: Limits): Reader {
  const folder = mkdtempSync(join(tmpdir(), 'ringneck-sql-'));
  const told = Object.fromEntries(TOLD.flatMap(name => (environment[name] === undefined ? [] : [[name, environment[name]]])));
  const child = fork(new URL('./child.js', import.meta.url), [], {
    cwd: folder,
    env: { ...told, HOME: folder, TMPDIR: folder },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'ipc'],
  });
  const begun = once(child, 'message');
  begun.catch(() => undefined);
  const failed = once(child, 'error').then(([error]) => {
    throw new RingneckError(`the process for the query cannot be started: ${(error as Error).message}`);
  });
  failed.catch(() => undefined);
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  const endNow = () => {
    child.kill('SIGKILL');
    removeFolder();
  };
  process.once('exit', endNow);
  // It reads only: there is nothing that a kill could harm.
  const end = async () => {
    child.kill('SIGKILL');
    await Promise.race([ended(child), failed.catch(() => undefined)]);
    removeFolder();
    process.off('exit', endNow);
  };

  async function ask(
    question: Omit<QueryRequest, 'memoryLimit'>,
    take: (frame: Frame) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const stopped = new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      const stop = () => reject(new RingneckError(`the query was stopped after ${limits.seconds} s: --timeout allows more`));
      // How long it takes to start is not the query's time.
      begun.then(() => {
        timer = setTimeout(stop, limits.seconds * 1000);
      }, reject);
    });
    stopped.catch(() => undefined);
    try {
      // A process that died before it was asked is told by the end of its pipe.
      child.send({ question: { ...question, memoryLimit: limits.memory.text }, memoryBytes: limits.memory.bytes }, () => undefined);
      await Promise.race([stopped, failed, takeAll(take)]);
    } finally {
      clearTimeout(timer);
      await end();
    }
  }

  async function takeAll(take: (frame: Frame) => Promise<void>): Promise<void> {
    for await (const frame of readFrames(child.stdio[3] as Readable)) {
      if (frame.kind === 'done') return;
      if (frame.kind === 'error') throw errorOf(frame.error, limits);
      await take(frame);
    }
    await ended(child);
    if (child.signalCode === OVER_MEMORY)
      throw new RingneckError(`the query was stopped: it took far more than ${limits.memory.text} of memory`);
    const how = child.signalCode ?? `exit code ${child.exitCode}`;
    throw new RingneckError(`the query ended its own process (${how}); warehouse and pipeline are not concerned`);
  }

  return { ask, isAlive: () => isAlive(child), end };
}

const isAlive = (child: ChildProcess) => child.exitCode === null && child.signalCode === null;

async function ended(child: ChildProcess): Promise<void> {
  if (isAlive(child)) await once(child, 'exit');
}

function errorOf({ message, exitCode }: { message: string; exitCode: number }, { memory }: Limits): RingneckError {
  if (exitCode === 75) return new TryLaterError(message);
  if (/^Out of Memory Error/.test(message)) {
    return new RingneckError(`${message.split('\n', 1)[0]} (--memory allows more than ${memory.text})`);
  }
  return new RingneckError(message, exitCode);
}
