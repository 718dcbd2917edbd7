import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { RingneckError } from '../base/errors.ts';
import { writeFileAtomically } from '../base/files.ts';
import { openJsonFile } from '../base/json-file.ts';

/** Where it is kept who has come in: each a role, the account of a person, and a digest of a cookie. */
export const consoleSessionsIn = (data: string): string => join(data, 'console-sessions.json');

const sessions = z.array(z.looseObject({ person: z.string().nullable() }));

/** Everybody comes in again by a fresh link. */
export const removeConsoleSessions = (data: string): void => rmSync(consoleSessionsIn(data), { force: true });

/** Has who looks at their own data do so by the new name of their account: the former one may become somebody else's. */
export function renameInConsoleSessions(data: string, from: string, to: string): void {
  try {
    const known = openJsonFile(consoleSessionsIn(data), sessions).read() ?? [];
    if (!known.some(({ person }) => person === from)) return;
    const renamed = known.map(session => (session.person === from ? { ...session, person: to } : session));
    writeFileAtomically(consoleSessionsIn(data), JSON.stringify(renamed));
  } catch (error) {
    // One that cannot be read lets nobody in.
    if (!(error instanceof RingneckError)) throw error;
    removeConsoleSessions(data);
  }
}
