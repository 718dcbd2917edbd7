import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface Child {
  process: ChildProcess;
  pid: number;
  /** The next line of its standard output; rejects when it ends first. */
  line(): Promise<string>;
  /** Resolves with what it ended by. */
  ended: Promise<number | NodeJS.Signals | null>;
}

/** Runs a script by Node itself, in a process of its own. */
export function startChild(script: string, ...parameters: string[]): Child {
  const child = spawn(process.execPath, [script, ...parameters], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    process: child,
    pid: child.pid!,
    async line() {
      const next = await lines.next();
      if (next.done) throw new Error(`${script} ended before it said a word`);
      return next.value;
    },
    ended: new Promise(resolve => child.once('close', (code, signal) => resolve(signal ?? code))),
  };
}

export const childScript = fileURLToPath(new URL('child.mjs', import.meta.url));
