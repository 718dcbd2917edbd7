import { isUtf8 } from 'node:buffer';
import { type Stats, statSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { type Access, accessBy } from './access.ts';
import { messageOf, UsageError } from './errors.ts';
import { readWithStats } from './files.ts';

/** What every command but `demo` reads in the working directory. */
export const ENV_FILE = '.env';

/** Names of other programs are theirs: the same file may serve several. */
const isOurs = (name: string) => name.startsWith('RINGNECK_');

/**
 * Adds the settings of a file to the environment, which wins where it has one that is not empty.
 * @param given the file; without it `.env` of the working directory, where there is one with settings of ours
 * @param isMade whether it is about to be made, and may be missing
 * @returns what others can read, where that is a secret
 * @throws UsageError for a file that others can write: they could have us send tokens to them
 */
export function loadEnvFile(env: NodeJS.ProcessEnv, given?: string, isMade = false): Access | undefined {
  const path = given ?? ENV_FILE;
  const read = readEnvFile(path, given !== undefined && !isMade);
  if (!read) return undefined;
  const { settings, stats } = read;
  const names = Object.keys(settings).filter(isOurs);
  if (given === undefined && !names.length) return undefined;
  const access = process.platform === 'win32' ? undefined : accessBy(stats, path, `${path} is`);
  if (access?.can === 'write') throw new UsageError(`${access.message}: ${access.fix}`);
  // What the environment has as a secret must not come from a file too, nor the other way round.
  for (const name of names) if (!env[name] && !env[otherForm(name)]) env[name] = settings[name];
  return names.some(name => /(SECRET|TOKEN|QUEUE_URL|KEY|PASSWORD)(_OLD)?$/.test(name)) ? access : undefined;
}

const otherForm = (name: string) => (name.endsWith('_FILE') ? name.slice(0, -'_FILE'.length) : `${name}_FILE`);

/** The variables of a file, and what it is; undefined where there is none and nobody has named it. */
function readEnvFile(path: string, isNamed: boolean): { settings: Record<string, string | undefined>; stats: Stats } | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  // Some keep a folder of this name.
  if (!isNamed && !found?.isFile()) return undefined;
  if (!found) throw new UsageError(`--env-file ${path}: there is no such file`);
  if (!found.isFile()) throw new UsageError(`--env-file ${path} is no regular file`);
  const { bytes, stats } = readNamed(path);
  if (!isUtf8(bytes)) throw new UsageError(`${path} is not UTF-8: save it as UTF-8`);
  const text = bytes.toString();
  const settings = parseEnv(text);
  refuseLines(path, text, settings);
  return { settings, stats };
}

function readNamed(path: string): ReturnType<typeof readWithStats> {
  try {
    return readWithStats(path);
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${messageOf(error)}`);
  }
}

const BEGINS = /^\s*(?:export\s+)?(RINGNECK_\w*)\s*(=?)(.*)$/;

/**
 * A line of ours that sets nothing, or less than stands there, or sets what is set already, was meant otherwise; a value of several lines may
 * hold anything.
 */
function refuseLines(path: string, text: string, settings: Record<string, string | undefined>): void {
  const values = Object.values(settings);
  const setAt = new Map<string, number>();
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    const [, name, sets, said = ''] = BEGINS.exec(line) ?? [];
    if (name === undefined || values.some(value => value?.includes('\n') && value.includes(line.replace(/["'`]\s*$/, '')))) continue;
    const number = i + 1;
    if (!sets) throw new UsageError(`${path}, line ${number}: ${name} has no “=” behind it`);
    const earlier = setAt.get(name);
    if (earlier !== undefined)
      throw new UsageError(`${path} sets ${name} twice, in the lines ${earlier} and ${number}: remove one of them`);
    setAt.set(name, number);
    const cut = findCut(said, settings[name]);
    if (cut !== undefined) throw new UsageError(`${path}, line ${number}: ${name} ${cut}`);
  }
}

/** Why Node's reader takes less than was written behind the “=”, or the quote itself; undefined where it takes all. */
function findCut(said: string, value: string | undefined): string | undefined {
  const [, quote] = /^\s*(["'`])/.exec(said) ?? [];
  if (quote === undefined)
    return /^(?:[^#]*[^\s#])?#/.test(said) ? 'ends before its #, which begins a comment: put the value in quotes' : undefined;
  if (value?.startsWith(quote)) return `begins with ${quote}, and there is no other to end it: add that`;
  const rest = said.trimStart().slice(1).split(quote).slice(1);
  if (!rest.length || /^\s*(#|$)/.test(rest.join(quote))) return undefined;
  return `ends with its second ${quote}, and more stands behind: put the value in quotes that it does not hold, ' or " or \``;
}
