import { statSync } from 'node:fs';
import { resources } from '../../../schema/index.ts';
import { getSource, hasOwnerSince } from '../../app/find-source.ts';
import type { Settings } from '../../base/config.ts';
import type { Catalogue } from '../../warehouse/catalogue.ts';
import { noteStale } from '../terminal/note.ts';
import { type Limits, type Reader, startReader } from './ask.ts';
import type { Page } from './frames.ts';

/** Asks one question after another, each of a process of its own. */
export interface QueryRunner {
  /** Runs SQL and hands on the first rows of each result. */
  ask(sql: string, rows: number, take: (page: Page) => void, signal: AbortSignal): Promise<void>;
  /** As of the file that was asked last, read once for each. */
  readCatalogue(signal: AbortSignal): Promise<Catalogue>;
  end(): Promise<void>;
}

export function createQueryRunner(settings: Settings, limits: Limits): QueryRunner {
  // Started before it is needed, so that a statement need not wait for it.
  let next: Reader = startReader(limits);
  let toldStale = false;
  let known: { file: string; catalogue: Catalogue } | undefined;

  async function ask(sql: string, rows: number, take: (page: Page) => void, signal: AbortSignal): Promise<void> {
    const source = await getSource(settings, signal);
    const { path, stale } = source;
    if (!toldStale) noteStale(source);
    toldStale = stale;
    const reader = next.isAlive() ? next : startReader(limits);
    try {
      await reader.ask({ path, sql, as: { pageOf: rows } }, async frame => void (frame.kind === 'page' && take(frame.page)), signal);
    } catch (error) {
      if (await hasOwnerSince(error, source, settings)) return ask(sql, rows, take, signal);
      throw error;
    } finally {
      await reader.end();
      next = startReader(limits);
    }
  }

  return {
    ask,
    async readCatalogue(signal) {
      const { path } = await getSource(settings, signal);
      const { ino, mtimeMs } = statSync(path);
      const file = `${path} ${ino} ${mtimeMs}`;
      if (known?.file === file) return known.catalogue;
      const { readCatalogue } = await import('../../warehouse/catalogue.ts');
      known = { file, catalogue: await readCatalogue(path, resources) };
      return known.catalogue;
    },
    end: () => next.end(),
  };
}
