import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { join } from 'node:path';
import { inject } from 'vitest';

/** The program as test/support/build.ts compiled it, because Node 20 runs no TypeScript. */
export const MAIN = join(inject('compiled'), 'src/cli/main.js');

export interface Ended {
  /** The exit code, or the signal that ended it. */
  code: number | NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface Surroundings {
  /** RINGNECK_* and the like: of our own environment it has only where programs, its home and temporary files are. No console, whose port is the same for all. */
  env?: Record<string, string>;
  cwd?: string;
  input?: string;
  /** Another copy of the program. */
  main?: string;
}

/** Runs one command to its end, as from a script: nothing is a terminal. */
export const ringneck = (args: readonly string[], surroundings?: Surroundings): Promise<Ended> => startRingneck(args, surroundings).end();

export interface Running {
  process: ChildProcess;
  /** What came so far. */
  readonly stdout: string;
  readonly stderr: string;
  /** The next line of its standard output; rejects when it ends first. */
  line(): Promise<string>;
  /** Resolves once its standard error holds this; rejects when it ends first. */
  said(text: string | RegExp): Promise<void>;
  kill(signal: NodeJS.Signals): void;
  /** Waits for its end. */
  end(): Promise<Ended>;
}

const started = new Map<ChildProcess, Promise<Ended>>();

/** Starts a command that goes on; what still runs after the tests of the file is killed. */
export function startRingneck(args: readonly string[], { env = {}, cwd, input = '', main = MAIN }: Surroundings = {}): Running {
  const { PATH, HOME, TMPDIR } = process.env;
  const child = spawn(process.execPath, ['--', main, ...args], {
    env: { PATH, HOME, TMPDIR, RINGNECK_CONSOLE_PORT: 'off', ...env },
    cwd,
    stdio: 'pipe',
  });
  const output = { stdout: '', stderr: '' };
  const written = new EventEmitter();
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', text => {
      output[stream] += text;
      written.emit('text');
    });
  }
  // Who does not read its input may be gone already.
  child.stdin.on('error', () => undefined).end(input);
  const ended = new Promise<Ended>(resolve =>
    child.once('close', (code, signal) => {
      started.delete(child);
      resolve({ code: signal ?? code, ...output });
    }),
  );
  started.set(child, ended);
  const until = async (isThere: () => boolean, what: string) => {
    while (!isThere()) {
      if (!started.has(child)) throw new Error(`ringneck ${args.join(' ')} ended before ${what}: ${output.stderr}`);
      await Promise.race([once(written, 'text'), ended]);
    }
  };
  let lineAt = 0;
  return {
    process: child,
    get stdout() {
      return output.stdout;
    },
    get stderr() {
      return output.stderr;
    },
    async line() {
      await until(() => output.stdout.includes('\n', lineAt), 'another line');
      const from = lineAt;
      lineAt = output.stdout.indexOf('\n', from) + 1;
      return output.stdout.slice(from, lineAt - 1);
    },
    said: text => until(() => (typeof text === 'string' ? output.stderr.includes(text) : text.test(output.stderr)), `it said ${text}`),
    kill: signal => child.kill(signal),
    end: () => ended,
  };
}

/** Kills what still runs. */
export async function killStarted(): Promise<void> {
  for (const child of started.keys()) child.kill('SIGKILL');
  await Promise.all(started.values());
}
