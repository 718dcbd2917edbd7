import { heartRate } from '../../schema/resources/heart-rate.ts';
import { ServiceError } from './error.ts';
import type { Page, PageReader, Reading } from './pages.ts';
import type { ReleaseWhile } from './response.ts';
import type { RouteMemory } from './routes.ts';

export interface HeartRateQuery<Rows = never> extends Pick<Reading<Rows>, 'readRows'> {
  token: string;
  from: string;
  to: string;
  releaseWhile?: ReleaseWhile | undefined;
  /** The digests of an earlier reading of the same range: pages that are the same are not parsed. */
  known?: readonly string[] | undefined;
}

const { plainPath, sandboxPath } = heartRate;
/** The plain path's 404 counts when it says so again after this. */
const REPEATED_AFTER_MS = 5_000;
/** Then it is believed for so long, until a read asks it again. */
const BELIEVED_MS = 3_600_000;

/**
 * Reads heart rate at a given path, or (`auto`) at the plain one and, where the service itself says twice that it has no such path, at
 * that of 4.3. The latter's rows may be generated, so a service that has once answered at the plain path is never asked there. What is
 * empty at the plain path shows that it is the right one only when it is so minutes later too: until then a service that has answered at the
 * other is read there.
 * @param setting a path, or `auto`
 * @param sleep waits between the two
 */
export class HeartRateReader {
  readonly #setting: string;
  readonly #pages: PageReader;
  readonly #routes: RouteMemory;
  readonly #now: () => number;
  readonly #sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** By token: what one person's 404 shows says nothing of the others. */
  readonly #missingUntil = new Map<string, number>();
  #sandboxAnswered = false;

  constructor(
    setting: string,
    pages: PageReader,
    routes: RouteMemory,
    now: () => number,
    sleep: (ms: number, signal: AbortSignal) => Promise<void>,
  ) {
    this.#setting = setting;
    this.#pages = pages;
    this.#routes = routes;
    this.#now = now;
    this.#sleep = sleep;
  }

  /** The path in use; undefined until it is known. */
  path(): string | undefined {
    if (this.#setting !== 'auto') return this.#setting;
    if (this.#hasPlain()) return plainPath;
    return this.#sandboxAnswered ? sandboxPath : undefined;
  }

  async *read<Rows = never>(
    { from, to, known = [], ...rest }: HeartRateQuery<Rows>,
    signal: AbortSignal,
  ): AsyncGenerator<Page<Rows>, void, undefined> {
    const query = { parameters: { start_datetime: from, end_datetime: to }, known, ...rest };
    if (this.#setting !== 'auto') yield* this.#pages.read({ ...query, route: this.#setting }, signal);
    else if (!(yield* this.#readPlain(query, signal))) yield* this.#readSandbox(query, signal);
  }

  /** Whether the plain path is the one, and has been read. */
  async *#readPlain<Rows>(query: Omit<Reading<Rows>, 'route'>, signal: AbortSignal): AsyncGenerator<Page<Rows>, boolean, undefined> {
    const { token, releaseWhile } = query;
    for (let isRepeated = false; this.#hasPlain() || !this.#isMissing(token); isRepeated = true) {
      if (isRepeated) await (releaseWhile?.(() => this.#pause(signal)) ?? this.#pause(signal));
      try {
        let isLeft = false;
        for await (const page of this.#pages.read({ ...query, route: plainPath, emptyIsDoubtful: true }, signal)) {
          isLeft = !this.#hasPlain() && this.#hasSandbox();
          if (!isLeft) yield page;
        }
        return !isLeft;
      } catch (error) {
        if (!(error instanceof ServiceError && error.kind === 'not_found') || this.#hasPlain()) throw error;
        if (isRepeated) this.#missingUntil.set(token, this.#now() + BELIEVED_MS);
      }
    }
    return false;
  }

  async *#readSandbox<Rows>(query: Omit<Reading<Rows>, 'route'>, signal: AbortSignal): AsyncGenerator<Page<Rows>, void, undefined> {
    for await (const page of this.#pages.read({ ...query, route: sandboxPath }, signal)) {
      if (this.#hasPlain()) {
        throw new ServiceError('unavailable', sandboxPath, `left, because ${plainPath} has answered meanwhile; to be read from there`);
      }
      this.#sandboxAnswered = true;
      yield page;
    }
  }

  #hasPlain(): boolean {
    return this.#routes.hasAnswered(`GET ${plainPath}`);
  }

  #hasSandbox(): boolean {
    return this.#sandboxAnswered || this.#routes.hasAnswered(`GET ${sandboxPath}`);
  }

  #isMissing(token: string): boolean {
    for (const [known, until] of this.#missingUntil) if (until <= this.#now()) this.#missingUntil.delete(known);
    return this.#missingUntil.has(token);
  }

  async #pause(signal: AbortSignal): Promise<void> {
    try {
      await this.#sleep(REPEATED_AFTER_MS, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    if (signal.aborted) throw new ServiceError('stopped', plainPath, 'stopped');
  }
}
