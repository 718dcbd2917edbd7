import { join } from 'node:path';

/** Where it is kept who has come in: each a role, the account of a person, and a digest of a cookie. */
export const consoleSessionsIn = (data: string): string => join(data, 'console-sessions.json');
