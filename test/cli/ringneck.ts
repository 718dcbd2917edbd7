import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, inject } from 'vitest';

/** The program as test/support/build.ts compiled it, because Node 20 runs no TypeScript. */
export const MAIN = join(inject('compiled'), 'src/cli/main.js');

export interface Ended {
  /** The exit code, or the signal that ended it. */
  code: number | NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface Surroundings {
  /** RINGNECK_* and the like; nothing of ours is inherited. */
  env?: Record<string, string>;
  cwd?: string;
  input?: string;
}

const inherited = () => Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(RINGNECK|VITEST|NODE_)/.test(name)));

function run(args: readonly string[], { env = {}, cwd }: Surroundings): ChildProcess {
  return spawn(process.execPath, [MAIN, ...args], { env: { ...inherited(), ...env }, cwd, stdio: ['pipe', 'pipe', 'pipe'] });
}

/** Runs one command to its end, as from a script: nothing is a terminal. */
export async function ringneck(args: readonly string[], surroundings: Surroundings = {}): Promise<Ended> {
  return (await startRingneck(args, surroundings)).end();
}

export interface Running {
  process: ChildProcess;
  /** What came so far. */
  readonly stdout: string;
  readonly stderr: string;
  /** The next line of its standard output. */
  line(): Promise<string>;
  /** Resolves once its standard error holds this. */
  said(text: string | RegExp): Promise<void>;
  kill(signal: NodeJS.Signals): void;
  /** Waits for its end. */
  end(): Promise<Ended>;
}

const started = new Set<ChildProcess>();

/** Starts a command that goes on; what still runs after the tests of the file is killed. */
export async function startRingneck(args: readonly string[], surroundings: Surroundings = {}): Promise<Running> {
  const child = run(args, surroundings);
  started.add(child);
  let stdout = '';
  let stderr = '';
  child.stdout!.setEncoding('utf8').on('data', text => {
    stdout += text;
  });
  child.stderr!.setEncoding('utf8').on('data', text => {
    stderr += text;
  });
  // Who does not read its input may be gone already.
  child.stdin!.on('error', () => undefined).end(surroundings.input ?? '');
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  const ended = new Promise<Ended>(resolve =>
    child.once('close', (code, signal) => {
      started.delete(child);
      resolve({ code: signal ?? code, stdout, stderr });
    }),
  );
  return {
    process: child,
    get stdout() {
      return stdout;
    },
    get stderr() {
      return stderr;
    },
    async line() {
      const next = await lines.next();
      if (next.done) throw new Error(`ringneck ${args.join(' ')} ended before it said a word: ${stderr}`);
      return next.value;
    },
    async said(text) {
      const there = () => (typeof text === 'string' ? stderr.includes(text) : text.test(stderr));
      while (!there()) {
        if (!started.has(child)) throw new Error(`ringneck ${args.join(' ')} ended without saying ${text}: ${stderr}`);
        await Promise.race([new Promise(resolve => child.stderr!.once('data', resolve)), ended]);
      }
    },
    kill: signal => child.kill(signal),
    end: () => ended,
  };
}

export interface Sandbox {
  url: string;
  people: { name: string; user_id: string; token: string }[];
  client: { id: string; secret: string };
  control: { url: string; secret: string };
}

/** A sandbox service in a process of its own, until the tests of the file have ended. */
export async function startSandbox(folder: string, ...options: string[]): Promise<Sandbox> {
  const args = ['service', '--people', '2', '--from', '2025-01-01', '--to', '2025-01-31', '--port', '0', '--json', ...options];
  const service = await startRingneck(args, { env: { RINGNECK_DATA: folder, RINGNECK_LOG_LEVEL: 'warn' } });
  return JSON.parse(await service.line()) as Sandbox;
}

afterAll(() => {
  for (const child of started) child.kill('SIGKILL');
});
