import { heartRate } from '../../schema/resources/heart-rate.ts';
import { ServiceError } from './error.ts';
import type { Page, ReadPages } from './pages.ts';
import type { ReleaseWhile } from './response.ts';
import type { RouteMemory } from './routes.ts';

interface HeartRateQuery {
  token: string;
  from: string;
  to: string;
  releaseWhile?: ReleaseWhile | undefined;
  /** The digests of an earlier reading of the same range: pages that are the same are not parsed. */
  known?: readonly string[] | undefined;
}

export interface HeartRateReader {
  read(query: HeartRateQuery, signal: AbortSignal): AsyncGenerator<Page, void, undefined>;
  /** The path in use; undefined until it is known. */
  path(): string | undefined;
}

/** The plain path's 404 counts when it says so again after this. */
const REPEATED_AFTER_MS = 5_000;
/** Then it is believed for so long, until a read asks it again. */
const BELIEVED_MS = 3_600_000;

/**
 * Reads heart rate at a given path, or (`auto`) at the plain one and, where the service itself says twice that it has no such path, at
 * that of 4.3. The latter's rows may be generated, so a service that has once answered at the plain path is never asked there. What is
 * empty at the plain path shows that it is the right one only when it is so minutes later too: until then a service that has answered at the
 * other is read there.
 * @param sleep waits between the two
 */
export function createHeartRateReader(
  setting: string,
  readPages: ReadPages,
  routes: RouteMemory,
  now: () => number,
  sleep: (ms: number, signal: AbortSignal) => Promise<void>,
): HeartRateReader {
  const { plainPath, sandboxPath } = heartRate;
  const hasPlain = () => routes.hasAnswered(`GET ${plainPath}`);
  /** By token: what one person's 404 shows says nothing of the others. */
  const missingUntil = new Map<string, number>();
  let sandboxAnswered = false;
  const hasSandbox = () => sandboxAnswered || routes.hasAnswered(`GET ${sandboxPath}`);

  function isMissing(token: string): boolean {
    for (const [known, until] of missingUntil) if (until <= now()) missingUntil.delete(known);
    return missingUntil.has(token);
  }

  async function pause(signal: AbortSignal): Promise<void> {
    try {
      await sleep(REPEATED_AFTER_MS, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    if (signal.aborted) throw new ServiceError('stopped', plainPath, 'stopped');
  }

  async function* readAuto(query: HeartRateQuery, signal: AbortSignal) {
    const parameters = { start_datetime: query.from, end_datetime: query.to };
    const { token, releaseWhile, known = [] } = query;
    for (let isRepeated = false; hasPlain() || !isMissing(token); isRepeated = true) {
      if (isRepeated) await (releaseWhile?.(() => pause(signal)) ?? pause(signal));
      try {
        let isLeft = false;
        for await (const page of readPages({ route: plainPath, parameters, token, releaseWhile, known, emptyIsDoubtful: true }, signal)) {
          isLeft = !hasPlain() && hasSandbox();
          if (!isLeft) yield page;
        }
        if (!isLeft) return;
        break;
      } catch (error) {
        if (!(error instanceof ServiceError && error.kind === 'not_found') || hasPlain()) throw error;
        if (isRepeated) missingUntil.set(token, now() + BELIEVED_MS);
      }
    }
    for await (const page of readPages({ route: sandboxPath, parameters, token, releaseWhile, known }, signal)) {
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
    read: ({ token, from, to, releaseWhile, known = [] }, signal) =>
      readPages({ route: setting, parameters: { start_datetime: from, end_datetime: to }, token, releaseWhile, known }, signal),
    path: () => setting,
  };
}
