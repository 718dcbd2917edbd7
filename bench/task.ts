import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** What one piece of work cost this process, all its threads together. */
export interface Cost {
  /** Seconds, user and system. */
  cpu: number;
  /** Seconds. */
  wall: number;
  /** Highest resident set of the process so far, bytes. */
  peak: number;
}

/** Runs work and says what it cost. What the process did before (start, loading modules, reading its input) is not in it. */
export async function withCost<Result>(work: () => Promise<Result>): Promise<{ cost: Cost; result: Result }> {
  const before = process.cpuUsage();
  const start = performance.now();
  const result = await work();
  const wall = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(before);
  return { cost: { cpu: (user + system) / 1e6, wall, peak: peakBytes() }, result };
}

/** What this process has cost since its start: Node's own and the loading of modules are in it. */
export function wholeCost(): Cost {
  const { user, system } = process.cpuUsage();
  return { cpu: (user + system) / 1e6, wall: performance.now() / 1000, peak: peakBytes() };
}

function peakBytes(): number {
  try {
    // `maxRSS` of a child begins with that of its parent on Linux.
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]) * 1024;
  } catch {
    return process.resourceUsage().maxRSS * 1024;
  }
}

/** Work that a fresh process does. */
export interface Task<Job, Result> {
  /** The address of the module that exports it, and by which name. */
  module: string;
  name: string;
  perform(job: Job): Promise<Result>;
}

export const defineTask = <Job, Result>(module: string, name: string, perform: (job: Job) => Promise<Result>): Task<Job, Result> => ({
  module,
  name,
  perform,
});

/** What a child says of its task: `result`, or why there is none. */
interface Said {
  result?: unknown;
  error?: string;
}

/** Runs one task in a fresh process and waits for its end. */
export async function runTask<Job, Result>(task: Task<Job, Result>, job: Job): Promise<Result> {
  const { child, result } = await startTask(task, job);
  await ended(child);
  return result;
}

/** Starts a task that goes on after its answer, as a server does, until `stop`. */
export async function startTask<Job, Result>(
  { module, name }: Task<Job, Result>,
  job: Job,
): Promise<{ child: ChildProcess; result: Result; stop(): Promise<void> }> {
  // No setting of whoever runs this reaches the pipeline.
  const { PATH, HOME, TMPDIR } = process.env;
  const child = fork(SELF, [module, name], { env: { PATH, HOME, TMPDIR } });
  killAtExit(child);
  const said = await new Promise<Said>(resolve => {
    child.once('message', message => resolve(message as Said));
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
  // Of the task that was named, whose result is of its own type.
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

const SELF = fileURLToPath(import.meta.url);

/** Makes this process do one task for the one that forked it, and end. */
async function performTask([module, name]: readonly string[]): Promise<void> {
  const received = once(process, 'message');
  const tasks = (await import(module!)) as Record<string, Task<unknown, unknown>>;
  const [{ job }] = await received;
  const said: Said = await tasks[name!]!.perform(job).then(
    result => ({ result }),
    error => ({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
  process.send!(said, () => process.connected && process.disconnect());
}

if (process.argv[1] === SELF) void performTask(process.argv.slice(2));
