import { resources } from '../../../schema/index.ts';
import { type CatalogueEntry, readCatalogue } from '../../warehouse/readers/catalogue.ts';
import { writeExample } from '../../warehouse/readers/example.ts';
import { readQueries } from '../../warehouse/readers/queries.ts';
import { type Recipe, readCookbook } from './cookbook.ts';

/** What a file holds, each entry with a first query; and questions to ask of it. */
export interface ToAsk {
  entries: readonly (CatalogueEntry & { example: string | null })[];
  questions: readonly Recipe[];
  cookbook: readonly Recipe[];
}

/** @param path a copy for readers */
export async function readToAsk(path: string): Promise<ToAsk> {
  const { entries, person } = await readCatalogue(path, resources);
  const name = person?.replaceAll("'", "''") ?? 'ada';
  const ofSomebody = ({ question, sql }: Recipe) => ({ question, sql: sql.replaceAll("'ada'", () => `'${name}'`) });
  return {
    entries: entries.map(entry => ({ ...entry, example: writeExample(entry, person ?? undefined) ?? null })),
    questions: readQueries().map(ofSomebody),
    cookbook: readCookbook().map(ofSomebody),
  };
}
