import { readFileSync, statSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { messageOf, UsageError } from './errors.ts';
import { realPath, writeFileAtomically } from './files.ts';

/** What a file of settings holds, and how it is to hold others. */
export interface EnvFile {
  path: string;
  text: string;
  /** Its variables, also those of other programs. */
  values: Readonly<Record<string, string | undefined>>;
}

/** @throws UsageError for what is no file, or cannot be read */
export function readEnvText(given: string): EnvFile {
  const path = realPath(given);
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) return { path, text: '', values: {} };
  if (!stats.isFile()) throw new UsageError(`${given} is no regular file: name another one with --env-file`);
  try {
    const text = readFileSync(path, 'utf8');
    return { path, text, values: parseEnv(text) };
  } catch (error) {
    throw new UsageError(`${given} cannot be read: ${messageOf(error)}`);
  }
}

/**
 * Sets variables in a file that its owner alone may read; all else that stands in it stays.
 * @throws UsageError where that cannot be written so that it is read as it was meant
 */
export function writeEnvFile({ path, text, values }: EnvFile, changes: Readonly<Record<string, string>>): void {
  let changed = text;
  for (const [name, value] of Object.entries(changes)) {
    const line = `${name}=${quote(value)}`;
    const known = new RegExp(`^[ \\t]*(export[ \\t]+)?${name}[ \\t]*=.*$`, 'm');
    if (known.test(changed)) changed = changed.replace(known, () => line);
    else changed += `${changed && !changed.endsWith('\n') ? '\n' : ''}${line}\n`;
  }
  const wanted = { ...values, ...changes };
  const read = parseEnv(changed);
  const wrong = [...new Set([...Object.keys(wanted), ...Object.keys(read)])].find(name => read[name] !== wanted[name]);
  if (wrong !== undefined) throw new UsageError(`${path} would not be read as it is meant: set ${wrong} in it by hand`);
  writeFileAtomically(path, changed);
}

const quote = (value: string): string => {
  if (/^[A-Za-z0-9_./:@%+,-]+$/.test(value)) return value;
  return value.includes("'") ? `"${value}"` : `'${value}'`;
};
