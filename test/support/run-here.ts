import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { CommanderError } from 'commander';
import { vi } from 'vitest';
import { type Ended, MAIN, type Surroundings } from './ringneck.ts';

type Program = typeof import('../../src/cli/program.ts');
type Errors = typeof import('../../src/base/errors.ts');

/** Whoever reads what a command says, and types what it asks for. */
export type Typist = (said: { readonly stderr: string }) => Promise<string>;

async function* typed(input: string | Typist, output: { stderr: string }): AsyncGenerator<Buffer> {
  yield Buffer.from(typeof input === 'string' ? input : await input(output));
}

let running: string | undefined;

/**
 * Does a command as `ringneck` does it, in this process: a process for each takes long. What only a process has is not there: the
 * log, signals, a terminal, the way out. One at a time, for it has the standard streams, the environment and the exit code to itself.
 */
export async function runHere(
  args: readonly string[],
  { env = {}, input = '', main = MAIN }: Omit<Surroundings, 'cwd' | 'input'> & { input?: string | Typist } = {},
): Promise<Ended> {
  const what = `ringneck ${args.join(' ')}`;
  if (running) throw new Error(`${running} is not done yet: ${what} would write into its streams`);
  running = what;
  // The compiled program: the processes that it starts lie beside it.
  const load = <Module>(path: string) => import(join(dirname(main), '..', path)) as Promise<Module>;
  const [{ createProgram }, { RingneckError, shownMessageOf }] = await Promise.all([
    load<Program>('cli/program.js'),
    load<Errors>('base/errors.js'),
  ]);
  const outer = { ...process.env };
  const outerCode = process.exitCode;
  const output = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map(name =>
    vi.spyOn(process[name], 'write').mockImplementation(text => {
      output[name] += typeof text === 'string' ? text : Buffer.from(text).toString();
      return true;
    }),
  );
  const stdin = vi.spyOn(process, 'stdin', 'get').mockReturnValue(Readable.from(typed(input, output)) as unknown as typeof process.stdin);
  process.exitCode = undefined;
  setEnvironment({ ...withoutOurs(outer), ...env });
  try {
    await createProgram().parseAsync(['node', 'ringneck', ...args]);
    return { code: Number(process.exitCode ?? 0), ...output };
  } catch (error) {
    if (error instanceof CommanderError) return { code: error.exitCode === 0 ? 0 : 2, ...output };
    const isOurs = error instanceof RingneckError;
    if (!isOurs && !(error instanceof Error && 'syscall' in error)) throw error;
    return { code: isOurs ? error.exitCode : 1, ...output, stderr: `${output.stderr}ringneck: ${shownMessageOf(error)}\n` };
  } finally {
    for (const spy of [...spies, stdin]) spy.mockRestore();
    setEnvironment(outer);
    process.exitCode = outerCode;
    running = undefined;
  }
}

const withoutOurs = (env: NodeJS.ProcessEnv) => Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('RINGNECK')));

/** The same object with other variables: whoever holds it sees them. */
function setEnvironment(env: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
}
