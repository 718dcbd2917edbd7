import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  futimesSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf } from '../base/errors.ts';
import { syncFolder, unlessMissing } from '../base/files.ts';
import { InTheWay } from './rewriting.ts';

/**
 * Where each who has come in, or has a link to, has a file: a role, and the account of a person. A link that is used takes the name of its
 * session. Nobody replaces a file: whoever ends it, or gives it another account, cannot have that undone by who had read it before.
 */
export const consoleSessionsIn = (data: string): string => join(data, 'console-sessions');

const session = z.looseObject({ person: z.string().nullable() });

/**
 * Everybody comes in again by a fresh link.
 * @returns where one could not be removed, what was done instead
 * @throws InTheWay where nothing can be done
 */
export function removeConsoleSessions(data: string): string | undefined {
  // Where an earlier version kept them.
  rmSync(join(data, 'console-sessions.json'), { force: true });
  return orEndAll(data, () => forEachFile(data, path => rmSync(path, { force: true })));
}

/**
 * Has who looks at their own data by a name do so no more: it is given to somebody else.
 * @returns where one could not be removed, what was done instead
 * @throws InTheWay where nothing can be done
 */
export function endConsoleSessionsOf(data: string, name: string): string | undefined {
  return orEndAll(data, () =>
    forEachFile(data, path => {
      if (parse(readFileSync(path, 'utf8'))?.person === name) rmSync(path, { force: true });
    }),
  );
}

/**
 * Has who looks at their own data do so by the new name of their account: the former one may become somebody else's.
 * @returns where one could not be changed, what was done instead
 * @throws InTheWay where nothing can be done
 */
export function renameInConsoleSessions(data: string, from: string, to: string): string | undefined {
  return orEndAll(data, () => forEachFile(data, path => renameIn(path, from, to)));
}

function renameIn(path: string, from: string, to: string): void {
  const file = openSync(path, 'r+');
  try {
    const found = parse(readFileSync(file, 'utf8'));
    // One that cannot be read lets nobody in.
    if (!found) rmSync(path, { force: true });
    if (found?.person !== from) return;
    const { size, atime, mtime } = fstatSync(file);
    // Blanks in the place of what was longer: at no moment is it cut.
    writeSync(file, JSON.stringify({ ...found, person: to }).padEnd(size), 0);
    futimesSync(file, atime, mtime);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Rows have moved or gone by then: a session that cannot be changed opens nothing, and nobody waits for it. */
function orEndAll(data: string, change: () => void): string | undefined {
  try {
    change();
    return undefined;
  } catch (error) {
    const folder = consoleSessionsIn(data);
    const aside = `${folder}.${randomBytes(8).toString('hex')}.over`;
    try {
      renameSync(folder, aside);
      syncFolder(data);
    } catch (again) {
      const why = `can neither be changed (${messageOf(error)}) nor moved aside (${messageOf(again)})`;
      throw new InTheWay(`${folder} opens the console by names of before, and ${why}: have it writable again, or remove it`, 1, {
        cause: again,
      });
    }
    try {
      // A link stays: without it nobody would be told of what lies where it leads.
      if (!lstatSync(aside).isSymbolicLink()) rmSync(aside, { recursive: true, force: true });
    } catch {
      // It is named below.
    }
    const left = existsSync(aside) ? `; ${aside} could not be removed, and opens nothing` : '';
    return `a session of the console could not be changed (${messageOf(error)}), so that all are over: who was in comes in again by a fresh link${left}`;
  }
}

function parse(text: string): z.infer<typeof session> | undefined {
  try {
    return session.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Twice: what the first round missed, for its link was being used, has its last name by the second. */
function forEachFile(data: string, change: (path: string) => void): void {
  for (const _round of [1, 2]) {
    for (const name of unlessMissing(() => readdirSync(consoleSessionsIn(data))) ?? []) {
      unlessMissing(() => change(join(consoleSessionsIn(data), name)));
    }
  }
}
