import { linkSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TryLaterError } from '../base/errors.ts';
import { ensureFolder, writeFileAtomically } from '../base/files.ts';

const NAME = /^lock\.(\d+)$/;

interface Holder {
  /** 0 once it was given back. */
  pid: number;
  /** Tells the process from a later one with the same number; empty where the system does not say. */
  started: string;
}

/** Numbers the temporary files of this process. */
let attempts = 0;

/**
 * Takes the folder for this process and returns how to give it back. Throws TryLaterError that names the holder's PID when a living process has it.
 *
 * The lock is the file `lock.N` with the highest N. Numbers only grow: whoever finds the highest given back, or its process dead,
 * makes the next one by a hard link, which succeeds for one process only and never shows half a file. Two that find the same dead
 * holder thus cannot both win, which removing a stale file and making it again would allow.
 */
export function lockFolder(folder: string, by = 'the service'): () => void {
  ensureFolder(folder);
  for (;;) {
    const highest = Math.max(0, ...lockNumbers(folder));
    const holder = highest === 0 ? undefined : findHolder(folder, highest);
    if (holder && isAlive(holder)) throw new TryLaterError(`${folder} is in use by ${by} with PID ${holder.pid}; stop it first`);
    const mine = highest + 1;
    if (!makeLock(folder, mine)) continue;
    const numbers = lockNumbers(folder);
    // Whoever read the folder long ago may have made a number that has been passed.
    if (Math.max(...numbers) !== mine) {
      rmSync(join(folder, `lock.${mine}`), { force: true });
      continue;
    }
    for (const number of numbers) if (number < mine) rmSync(join(folder, `lock.${number}`), { force: true });
    return () => writeFileAtomically(join(folder, `lock.${mine}`), JSON.stringify({ pid: 0, started: '' }));
  }
}

function lockNumbers(folder: string): number[] {
  return readdirSync(folder).flatMap(name => {
    const match = NAME.exec(name);
    return match ? [Number(match[1])] : [];
  });
}

function findHolder(folder: string, number: number): Holder | undefined {
  const path = join(folder, `lock.${number}`);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    // A later lock has replaced it: nobody holds this one.
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
  try {
    return JSON.parse(text);
  } catch {
    // A lock appears whole, so only a crash of the machine can have torn it.
    return undefined;
  }
}

function makeLock(folder: string, number: number): boolean {
  const own = join(folder, `.lock.${process.pid}.${attempts++}`);
  writeFileSync(own, JSON.stringify({ pid: process.pid, started: startOf(process.pid) }), { mode: 0o600 });
  try {
    linkSync(own, join(folder, `lock.${number}`));
    return true;
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    rmSync(own, { force: true });
  }
}

function isAlive({ pid, started }: Holder): boolean {
  if (pid === 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives and is another user's.
    if (isCode(error, 'ESRCH')) return false;
  }
  return started === '' || startOf(pid) === '' || startOf(pid) === started;
}

/**
 * When a process started, in Linux's own count since this boot: in a restarted container the same PID is another process. A zombie,
 * killed and not yet waited for by its parent, answers signals but has ended.
 */
function startOf(pid: number): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    // The second field is the command in brackets and may itself hold blanks and brackets; the start time is the 22nd.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ');
    if (!fields?.[19]) return '';
    return fields[0] === 'Z' ? 'ended' : `${boot} ${fields[19]}`;
  } catch {
    return '';
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
