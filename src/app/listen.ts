import { RingneckError } from '../base/errors.ts';

const REASONS: Record<string, string> = {
  EADDRINUSE: 'the port is in use',
  EACCES: 'this user may not listen there',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'there is no such host',
};

/**
 * Listens, or says in one line where it could not, why, and what chooses another place.
 * @param choice the option or setting that names the place
 */
export async function listening<T>({ host, port }: { host: string; port: number }, choice: string, listen: Promise<T>): Promise<T> {
  try {
    return await listen;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!(code in REASONS)) throw error;
    throw new RingneckError(`cannot listen at ${host}:${port} (${REASONS[code]}); ${choice} chooses another place`, 1, { cause: error });
  }
}
