import { realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { UsageError } from './errors.ts';
import { realPath } from './files.ts';
import { WAREHOUSE } from './warehouse-file.ts';

/** Ours, and for nobody else to read. */
const PRIVATE = [
  'secret.key',
  'accounts.secret',
  'mirror-tokens.json',
  WAREHOUSE,
  `${WAREHOUSE}.wal`,
  'control.sock',
  'inbox',
  'queue',
  'service',
  'console-sessions',
  'person-files',
];

/** Something of ours that other users of this machine can get at. */
export interface Access {
  can: 'write' | 'read';
  /** What is wrong, and the command that fixes it. */
  message: string;
  fix: string;
}

/** What other users can do with a data folder and with what lies in it, the folder first. */
export function findAccess(folder: string): Access[] {
  if (process.platform === 'win32' || !find(folder)?.isDirectory()) return [];
  const found = [accessOf(folder, `${folder} is`)];
  for (const name of PRIVATE) {
    const path = join(folder, name);
    found.push(accessOf(path, `${name} is`));
    const real = findReal(path);
    // Of its own link the control socket looks who made where it leads.
    if (name === 'control.sock' || real === undefined || dirname(real) === realpathSync(folder)) continue;
    found.push(sharedAccess(dirname(real), name));
    if (name === WAREHOUSE) found.push(accessOf(`${real}.wal`, `${real}.wal is`));
  }
  return found.filter(access => access !== undefined);
}

/**
 * Whether others can write to the folder in which something of ours lies: they could put in its place what they like, or make the log that
 * DuckDB will write to, and read it. A sticky folder, as /tmp, keeps nobody from that.
 */
function sharedAccess(folder: string, name: string): Access | undefined {
  const access = accessOf(folder, `${name} leads into ${folder}, which is`);
  if (access?.can !== 'write') return undefined;
  const { uid, mode } = statSync(folder);
  // A sticky folder is meant to be everybody's.
  const or = uid === process.getuid?.() && !(mode & 0o1000) ? `, or chmod go-w ${folder}` : '';
  return { ...access, fix: `move it into a folder that only you can write to${or}` };
}

/** What other users can do in the folder in which the snapshot is, or will be, put. */
export function findSnapshotAccess(snapshot: string, name = 'RINGNECK_SNAPSHOT'): Access | undefined {
  if (process.platform === 'win32') return undefined;
  const folders = [snapshot, findReal(snapshot)].flatMap(path => (path === undefined ? [] : [dirname(path)]));
  return folders.map(folder => sharedAccess(folder, name)).find(access => access !== undefined);
}

/**
 * @returns what others can read
 * @throws UsageError where others can write: they could have us do what they want, and with whose tokens
 */
export function ensureUnwritable(folder: string): Access[] {
  const found = findAccess(folder);
  const wrong = found.find(({ can }) => can === 'write');
  if (wrong) throw new UsageError(`${wrong.message}: ${wrong.fix}`);
  return found;
}

/** The command that keeps others from writing a file, or what is open of it; undefined when they cannot. */
export function fixWritable(path: string, stats = statSync(path)): string | undefined {
  if (process.platform === 'win32') return undefined;
  if (!isOurs(stats)) return `chown ${process.getuid?.()} ${path}`;
  return stats.mode & 0o022 ? `chmod go-w ${path}` : undefined;
}

/** What other users can do with a file or folder; `said` begins the sentence. */
export function accessOf(path: string, said: string): Access | undefined {
  const stats = find(path);
  return stats && accessBy(stats, path, said);
}

/** The same of what is open: the path may lead elsewhere by now. */
export function accessBy(stats: Stats, path: string, said: string): Access | undefined {
  const open = stats.isDirectory() ? `chmod 700 ${path}` : `chmod go= ${path}`;
  if (!isOurs(stats))
    return { can: 'write', message: `${said} another user’s (uid ${stats.uid})`, fix: `chown ${process.getuid?.()} ${path}` };
  if (stats.mode & 0o022) return { can: 'write', message: `${said} writable by others (${octal(stats)})`, fix: open };
  if (stats.mode & 0o077) return { can: 'read', message: `${said} open to others (${octal(stats)})`, fix: open };
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

/** Undefined where a link leads into no folder. */
function findReal(path: string): string | undefined {
  try {
    return realPath(path);
  } catch {
    return undefined;
  }
}

/** Root can do everything anyway. */
const isOurs = ({ uid }: Stats) => uid === process.getuid?.() || uid === 0;

const octal = ({ mode }: Stats) => (mode & 0o777).toString(8).padStart(4, '0');
