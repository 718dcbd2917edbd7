import { heartRate } from '../../schema/heart-rate.ts';
import { ServiceError } from './error.ts';
import type { Page, ReadPages } from './pages.ts';
import type { RouteMemory } from './routes.ts';

export interface HeartRateReader {
  read(query: { token: string; from: string; to: string }, signal: AbortSignal): AsyncGenerator<Page, void, undefined>;
  /** The path in use; undefined until it is known. */
  path(): string | undefined;
}

/** A 404 of the plain path is believed for so long; then a read asks it again. */
const BELIEVED_MS = 3_600_000;

/**
 * Reads heart rate at a given path, or (`auto`) at the plain one and, where that is not there, at the path of 4.3. The latter's rows
 * may be generated, so a service that has once answered at the plain path is never asked there.
 */
export function createHeartRateReader(setting: string, readPages: ReadPages, routes: RouteMemory, now: () => number): HeartRateReader {
  const { plainPath, sandboxPath } = heartRate;
  const hasPlain = () => routes.hasAnswered(`GET ${plainPath}`);
  /** By token: what one person's 404 shows says nothing of the others. */
  const missingUntil = new Map<string, number>();
  let sandboxAnswered = false;

  function isMissing(token: string): boolean {
    for (const [known, until] of missingUntil) if (until <= now()) missingUntil.delete(known);
    return missingUntil.has(token);
  }

  async function* readAuto(query: { token: string; from: string; to: string }, signal: AbortSignal) {
    const parameters = { start_datetime: query.from, end_datetime: query.to };
    const { token } = query;
    if (hasPlain() || !isMissing(token)) {
      try {
        yield* readPages({ route: plainPath, parameters, token }, signal);
        return;
      } catch (error) {
        if (!(error instanceof ServiceError && error.kind === 'not_found') || hasPlain()) throw error;
        missingUntil.set(token, now() + BELIEVED_MS);
      }
    }
    for await (const page of readPages({ route: sandboxPath, parameters, token }, signal)) {
      if (hasPlain()) {
        throw new ServiceError('unavailable', sandboxPath, `left, because ${plainPath} has answered meanwhile; to be read from there`);
      }
      sandboxAnswered = true;
      yield page;
    }
  }

  if (setting === 'auto') {
    return { read: readAuto, path: () => (hasPlain() ? plainPath : sandboxAnswered ? sandboxPath : undefined) };
  }
  return {
    read: ({ token, from, to }, signal) =>
      readPages({ route: setting, parameters: { start_datetime: from, end_datetime: to }, token }, signal),
    path: () => setting,
  };
}
