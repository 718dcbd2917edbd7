import { type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError } from './errors.ts';

/** Ours, and for nobody else to read. */
const PRIVATE = [
  'secret.key',
  'accounts.secret',
  'mirror-tokens.json',
  'warehouse.duckdb',
  'warehouse.duckdb.wal',
  'control.sock',
  'inbox',
  'queue',
  'service',
];

/** Something of ours that other users of this machine can get at. */
export interface Access {
  can: 'write' | 'read';
  /** What is wrong, and the command that mends it. */
  message: string;
  mend: string;
}

/** What other users can do with a data folder and with what lies in it, the folder first. */
export function findAccess(folder: string): Access[] {
  if (process.platform === 'win32' || !find(folder)?.isDirectory()) return [];
  const found = [accessOf(folder, `${folder} is`)];
  for (const name of PRIVATE) found.push(accessOf(join(folder, name), `${name} is`));
  return found.filter(access => access !== undefined);
}

/**
 * @returns what others can read
 * @throws UsageError where others can write: they could have us do what they want, and with whose tokens
 */
export function ensureUnwritable(folder: string): Access[] {
  const found = findAccess(folder);
  const wrong = found.find(({ can }) => can === 'write');
  if (wrong) throw new UsageError(`${wrong.message}: ${wrong.mend}`);
  return found;
}

/** The command that keeps others from writing a file; undefined when they cannot. */
export function mendWritable(path: string): string | undefined {
  if (process.platform === 'win32') return undefined;
  const stats = statSync(path);
  if (!isOurs(stats)) return `chown ${process.getuid?.()} ${path}`;
  return stats.mode & 0o022 ? `chmod go-w ${path}` : undefined;
}

/** What other users can do with a file or folder; `said` begins the sentence. */
export function accessOf(path: string, said: string): Access | undefined {
  const stats = find(path);
  if (stats === undefined) return undefined;
  const open = stats.isDirectory() ? `chmod 700 ${path}` : `chmod go= ${path}`;
  if (!isOurs(stats))
    return { can: 'write', message: `${said} another user’s (uid ${stats.uid})`, mend: `chown ${process.getuid?.()} ${path}` };
  if (stats.mode & 0o022) return { can: 'write', message: `${said} writable by others (${octal(stats)})`, mend: open };
  if (stats.mode & 0o077) return { can: 'read', message: `${said} open to others (${octal(stats)})`, mend: open };
  return undefined;
}

/** What cannot be looked at is told by whoever opens it. */
function find(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** Root can do everything anyway. */
const isOurs = ({ uid }: Stats) => uid === process.getuid?.() || uid === 0;

const octal = ({ mode }: Stats) => (mode & 0o777).toString(8).padStart(4, '0');
