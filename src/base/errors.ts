import { printable } from './printable.ts';

/**
 * The errors that a command ends with by its own will. Each message is one line that names the thing, the value and what to do next.
 */
export class RingneckError extends Error {
  /** What the process exits with. */
  readonly exitCode: number;

  constructor(message: string, exitCode = 1, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.exitCode = exitCode;
  }
}

/** Wrong usage or settings: exit 2. */
export class UsageError extends RingneckError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, 2, options);
  }
}

/** Nothing is wrong, somebody else is busy with it: exit 75, as `EX_TEMPFAIL` of sysexits. */
export class TryLaterError extends RingneckError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, 75, options);
  }
}

/** What is found; undefined where it cannot be, in our own words. */
export function unlessRefused<T>(find: () => T): T | undefined {
  try {
    return find();
  } catch (error) {
    if (error instanceof RingneckError) return undefined;
    throw error;
  }
}

/** The service's own sentence about an error, or about what caused it: for whoever asked, and never stored or logged. */
export function detailOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return 'detail' in error && typeof error.detail === 'string' ? error.detail : detailOf(error.cause);
}

/** The text for the terminal of whoever asked. */
export const shownMessageOf = (error: unknown): string => withDetail(messageOf(error), detailOf(error));

export const withDetail = (message: string, detail: string | undefined): string =>
  detail ? `${message} (it says: ${printable(detail)})` : message;

/** The text of anything thrown, in our own words. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What kind of error it is, for the log: the words of a database may quote what is in rows. */
export function kindOf(error: unknown): string {
  const said = /^[A-Za-z ]+ Error(?=:)/.exec(messageOf(error))?.[0];
  if (said || !(error instanceof Error)) return said ?? 'Error';
  return 'code' in error ? String(error.code) : error.name;
}
