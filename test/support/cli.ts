import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inject, onTestFinished } from 'vitest';

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface Command {
  process: ChildProcess;
  /** What it has written so far. */
  readonly stdout: string;
  readonly stderr: string;
  ended: Promise<Ended>;
  /** Waits until stderr holds something; fails when the process ends first. */
  says(pattern: RegExp): Promise<RegExpExecArray>;
}

/** Starts `ringneck` as a user does: the compiled program in a process of its own, with these settings and no others. */
export function startCli(parameters: readonly string[], settings: Record<string, string>, stdin = ''): Command {
  const { PATH, HOME, TMPDIR } = process.env;
  const base = Object.fromEntries(Object.entries({ PATH, HOME, TMPDIR }).filter(([, value]) => value !== undefined));
  const child = spawn(process.execPath, [join(inject('compiled'), 'src/cli/main.js'), ...parameters], {
    env: { ...base, RINGNECK_LOG_LEVEL: 'info', ...settings } as NodeJS.ProcessEnv,
    stdio: 'pipe',
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', text => {
    output.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', text => {
    output.stderr += text;
  });
  child.stdin.on('error', () => undefined).end(stdin);
  const ended = new Promise<Ended>(resolve => {
    child.once('close', (code, signal) => resolve({ code, signal, ...output }));
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return {
    process: child,
    get stdout() {
      return output.stdout;
    },
    get stderr() {
      return output.stderr;
    },
    ended,
    async says(pattern) {
      for (;;) {
        const found = pattern.exec(output.stderr);
        if (found) return found;
        if (child.exitCode !== null || child.signalCode !== null) throw new Error(`it ended before it said ${pattern}: ${output.stderr}`);
        await sleep(10);
      }
    },
  };
}

/** Runs a command to its end. */
export const runCli = (parameters: readonly string[], settings: Record<string, string>, stdin = ''): Promise<Ended> =>
  startCli(parameters, settings, stdin).ended;
