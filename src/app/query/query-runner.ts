import { existsSync, statSync } from 'node:fs';
import { resources } from '../../../schema/index.ts';
import type { Settings } from '../../base/config.ts';
import type { Catalogue } from '../../warehouse/readers/catalogue.ts';
import { getSource, hasOwnerSince, type Source } from '../find-source.ts';
import type { Frame, QueryRequest } from './frames.ts';
import { type Limits, QueryProcess } from './query-process.ts';

interface QueryRunnerParts {
  settings: Settings;
  limits: Limits;
  /** The file that is asked; without it the warehouse, or its owner's snapshot. */
  findFile?: (signal: AbortSignal) => Promise<Source>;
  /** Called with a source that is behind the warehouse, where the one before was not. */
  tellStale?: (source: Source) => void;
}

/** Asks one question after another, each of a process of its own. */
export class QueryRunner {
  readonly #parts: QueryRunnerParts;
  /** Started before it is needed, so that a statement need not wait for it. */
  #next: QueryProcess;
  #toldStale = false;
  #ended = false;
  #known: { file: string; catalogue: Catalogue } | undefined;

  constructor(parts: QueryRunnerParts) {
    this.#parts = parts;
    this.#next = new QueryProcess(parts.limits);
  }

  /** Runs SQL and hands on what is answered, frame by frame. Gives the file that was asked. */
  async ask(question: Pick<QueryRequest, 'sql' | 'as'>, take: (frame: Frame) => void, signal: AbortSignal): Promise<Source> {
    const { settings, limits, tellStale, findFile } = this.#parts;
    const source = await this.#find(signal);
    const { path, stale } = source;
    if (stale && !this.#toldStale) tellStale?.(source);
    this.#toldStale = stale;
    const query = this.#next.isAlive ? this.#next : new QueryProcess(limits);
    try {
      await query.ask({ path, ...question }, async frame => take(frame), signal);
      return source;
    } catch (error) {
      // The file of a person goes when anybody is erased, and is made again.
      const isGone = findFile !== undefined && !existsSync(path);
      if (isGone || (await hasOwnerSince(error, source, settings))) return this.ask(question, take, signal);
      throw error;
    } finally {
      await query.end();
      if (!this.#ended) this.#next = new QueryProcess(limits);
    }
  }

  /** As of the file that was asked last, read once for each. */
  async readCatalogue(signal: AbortSignal): Promise<Catalogue> {
    const source = await this.#find(signal);
    const { path } = source;
    const { ino, mtimeMs } = statSync(path);
    const file = `${path} ${ino} ${mtimeMs}`;
    if (this.#known?.file === file) return this.#known.catalogue;
    const { readCatalogue } = await import('../../warehouse/readers/catalogue.ts');
    try {
      this.#known = { file, catalogue: await readCatalogue(path, resources) };
    } catch (error) {
      if (await hasOwnerSince(error, source, this.#parts.settings)) return this.readCatalogue(signal);
      throw error;
    }
    return this.#known.catalogue;
  }

  /** Nothing is asked after it. */
  end(): Promise<void> {
    this.#ended = true;
    return this.#next.end();
  }

  #find(signal: AbortSignal): Promise<Source> {
    const { settings, findFile } = this.#parts;
    return findFile ? findFile(signal) : getSource(settings, signal);
  }
}
