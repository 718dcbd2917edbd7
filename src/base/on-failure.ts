import { spawn } from 'node:child_process';
import { basename } from 'node:path';
import { messageOf, UsageError } from './errors.ts';
import type { Log } from './log.ts';

export interface Failure {
  reason: 'account_parked' | 'run_failed' | 'events_missed';
  /** The account. */
  user?: string;
  collection?: string;
  /** One sentence; never a token. */
  message: string;
}

/** Has the command of RINGNECK_ON_FAILURE run; neither waits nor throws. */
export interface OnFailure {
  (failure: Failure): void;
  /** Waits for what runs and what waits, but not long; what still runs then goes on without us. */
  close(): Promise<void>;
}

export interface OnFailureOptions {
  /** RINGNECK_ON_FAILURE; without it nothing is run. */
  command: string | undefined;
  /** What the command inherits, but for our settings: some are secrets. */
  env: NodeJS.ProcessEnv;
  log: Log;
  /** Milliseconds since the epoch. */
  now: () => number;
  limitMs?: number;
  closeMs?: number;
}

const MOST_WAITING = 100;
const HOUR_MS = 3_600_000;
const LONGEST_MESSAGE = 2_000;

/**
 * Makes what runs the command: one at a time, the same reason of the same user and collection at most once an hour.
 * @throws UsageError when the command cannot be read
 */
export function createOnFailure({ command, env, log, now, limitMs = 60_000, closeMs = 5_000 }: OnFailureOptions): OnFailure {
  if (command === undefined) return Object.assign(() => undefined, { close: async () => undefined });
  const [file, ...parameters] = splitWords(command);
  if (!file) throw new UsageError('RINGNECK_ON_FAILURE is empty: it is to be a command');
  const base = Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('RINGNECK_') || name === 'RINGNECK_DATA'));
  // Its parameters may hold an address with a secret.
  const shown = basename(file);
  const waiting: Failure[] = [];
  const last = new Map<string, number>();
  let dropped = 0;
  let closed = false;
  let working: Promise<void> = Promise.resolve();
  let busy = false;

  /** Resolves when it ended, whichever way. */
  const run = (failure: Failure) =>
    new Promise<void>(resolve => {
      const ended = (about: object | undefined) => {
        clearTimeout(limit);
        if (about) log.warn({ command: shown, reason: failure.reason, ...about }, 'the command of RINGNECK_ON_FAILURE failed');
        resolve();
      };
      let late = false;
      const child = spawn(file, parameters, {
        env: { ...base, ...variablesOf(failure) },
        stdio: 'ignore',
        // A group of its own: Ctrl-C in our terminal is not for it, and with it ends what it started.
        detached: process.platform !== 'win32',
        windowsHide: true,
      });
      const limit = setTimeout(() => {
        late = true;
        kill(child.pid);
      }, limitMs);
      limit.unref();
      child.unref();
      child.once('error', error => ended({ error: messageOf(error) }));
      child.once('exit', (code, signal) => {
        if (late) ended({ error: `it did not end in ${limitMs / 1000} s and was killed` });
        else ended(code === 0 ? undefined : { code: code ?? signal });
      });
    });

  async function work(): Promise<void> {
    busy = true;
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      try {
        await run(next);
      } catch (error) {
        log.warn({ command: shown, error: messageOf(error) }, 'the command of RINGNECK_ON_FAILURE failed');
      }
    }
    busy = false;
    if (dropped) log.warn({ dropped }, 'failures came faster than the command of RINGNECK_ON_FAILURE ends: these were left out');
    dropped = 0;
  }

  /** Whether it was said within the hour; if not, it is now. */
  function repeated({ reason, user, collection }: Failure): boolean {
    const key = JSON.stringify([reason, user, collection]);
    if (now() - (last.get(key) ?? Number.NEGATIVE_INFINITY) < HOUR_MS) return true;
    if (last.size > 1_000) for (const [old, at] of last) if (now() - at >= HOUR_MS) last.delete(old);
    last.set(key, now());
    return false;
  }

  return Object.assign(
    (failure: Failure) => {
      if (closed) return;
      if (waiting.length >= MOST_WAITING) dropped++;
      else if (!repeated(failure)) {
        waiting.push(failure);
        if (!busy) working = work();
      }
    },
    {
      async close() {
        closed = true;
        let timer: NodeJS.Timeout | undefined;
        const patience = new Promise<'late'>(resolve => {
          timer = setTimeout(resolve, closeMs, 'late');
        });
        const left = (await Promise.race([working, patience])) === 'late';
        clearTimeout(timer);
        if (!left) return;
        const notRun = waiting.splice(0).length;
        log.warn({ command: shown, not_run: notRun }, 'the command of RINGNECK_ON_FAILURE still runs: it is left alone');
      },
    },
  );
}

/** An empty value is no account, or no collection. */
function variablesOf({ reason, user = '', collection = '', message }: Failure): Record<string, string> {
  // A NUL would end the value, and Node refuses it.
  const text = message.replaceAll('\u0000', ' ').slice(0, LONGEST_MESSAGE);
  return { RINGNECK_REASON: reason, RINGNECK_USER: user, RINGNECK_COLLECTION: collection, RINGNECK_MESSAGE: text };
}

function kill(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL');
  } catch {
    // It ended in this moment.
  }
}

/**
 * The words of a command, as a shell would part them: by blanks, but for those in single or double quotes. Nothing else has a meaning.
 * @throws UsageError where a quote is not closed
 */
export function splitWords(command: string): string[] {
  const words: string[] = [];
  for (let rest = command.trimStart(); rest; rest = rest.trimStart()) {
    const [word] = /^(?:[^\s"']|"[^"]*"|'[^']*')+/.exec(rest) ?? [];
    const end = word === undefined ? undefined : rest[word.length];
    if (word === undefined || end === '"' || end === "'") throw new UsageError('RINGNECK_ON_FAILURE has a quote that is not closed');
    words.push(word.replace(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single));
    rest = rest.slice(word.length);
  }
  return words;
}
