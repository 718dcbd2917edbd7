import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';

/** What a child says of its task: `result`, or why there is none. */
export interface Said<Result> {
  result?: Result;
  error?: string;
}

/** Runs one task in a fresh process and waits for its end. */
export async function runTask<Result>(name: string, job: unknown): Promise<Result> {
  const { child, result } = await startTask<Result>(name, job);
  await ended(child);
  return result;
}

/** Starts a task that goes on after its answer, as a server does, until `stop`. */
export async function startTask<Result>(
  name: string,
  job: unknown,
): Promise<{ child: ChildProcess; result: Result; stop(): Promise<void> }> {
  // No setting of whoever runs this reaches the pipeline.
  const { PATH, HOME, TMPDIR } = process.env;
  const child = fork(new URL(`./tasks/${name}.js`, import.meta.url), { env: { PATH, HOME, TMPDIR } });
  killAtExit(child);
  const said = await new Promise<Said<Result>>(resolve => {
    child.once('message', message => resolve(message as Said<Result>));
    child.once('exit', (code, signal) => resolve({ error: `ended without an answer (${signal ?? `exit code ${code}`})` }));
    child.send({ job });
  });
  if (said.error !== undefined) {
    child.kill('SIGKILL');
    throw new Error(`${name}: ${said.error}`);
  }
  const stop = async () => {
    child.kill('SIGKILL');
    await ended(child);
  };
  return { child, result: said.result as Result, stop };
}

/** However this process ends, none of its children stays behind. */
export function killAtExit(child: ChildProcess): void {
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}
