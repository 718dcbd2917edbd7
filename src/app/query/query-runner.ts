import { statSync } from 'node:fs';
import { resources } from '../../../schema/index.ts';
import type { Settings } from '../../base/config.ts';
import type { Catalogue } from '../../warehouse/readers/catalogue.ts';
import { getSource, hasOwnerSince, type Source } from '../find-source.ts';
import type { Page } from './frames.ts';
import { type Limits, QueryProcess } from './query-process.ts';

/** Asks one question after another, each of a process of its own. `tellStale` is called once with each source that is behind the warehouse. */
export class QueryRunner {
  readonly #settings: Settings;
  readonly #limits: Limits;
  readonly #tellStale: (source: Source) => void;
  /** Started before it is needed, so that a statement need not wait for it. */
  #next: QueryProcess;
  #toldStale = false;
  #known: { file: string; catalogue: Catalogue } | undefined;

  constructor(settings: Settings, limits: Limits, tellStale: (source: Source) => void) {
    this.#settings = settings;
    this.#limits = limits;
    this.#tellStale = tellStale;
    this.#next = new QueryProcess(limits);
  }

  /** Runs SQL and hands on the first rows of each result. */
  async ask(sql: string, rows: number, take: (page: Page) => void, signal: AbortSignal): Promise<void> {
    const source = await getSource(this.#settings, signal);
    const { path, stale } = source;
    if (stale && !this.#toldStale) this.#tellStale(source);
    this.#toldStale = stale;
    const query = this.#next.isAlive ? this.#next : new QueryProcess(this.#limits);
    try {
      await query.ask({ path, sql, as: { pageOf: rows } }, async frame => void (frame.kind === 'page' && take(frame.page)), signal);
    } catch (error) {
      if (await hasOwnerSince(error, source, this.#settings)) return this.ask(sql, rows, take, signal);
      throw error;
    } finally {
      await query.end();
      this.#next = new QueryProcess(this.#limits);
    }
  }

  /** As of the file that was asked last, read once for each. */
  async readCatalogue(signal: AbortSignal): Promise<Catalogue> {
    const { path } = await getSource(this.#settings, signal);
    const { ino, mtimeMs } = statSync(path);
    const file = `${path} ${ino} ${mtimeMs}`;
    if (this.#known?.file === file) return this.#known.catalogue;
    const { readCatalogue } = await import('../../warehouse/readers/catalogue.ts');
    this.#known = { file, catalogue: await readCatalogue(path, resources) };
    return this.#known.catalogue;
  }

  end(): Promise<void> {
    return this.#next.end();
  }
}
