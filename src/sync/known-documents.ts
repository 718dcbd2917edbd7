import { addDays } from '../../schema/instant.ts';
import type { Resource } from '../../schema/resource.ts';
import type { Client } from '../client/client.ts';
import { type DayRange, WIDENED_DAYS } from '../ledger/windows.ts';
import { MAPPING_VERSION } from '../warehouse/mapping.ts';
import { readHashes } from '../warehouse/stored-documents.ts';
import type { KnownDocument } from '../warehouse/write-result.ts';
import type { Pipeline } from './pipeline.ts';

/** An answer that came before: while just its documents are stored of the range, pages that are the same need not be parsed. */
export interface KnownAnswer {
  /** The digests of its pages. */
  pages: readonly string[];
  documents: readonly KnownDocument[];
}

/** Documents that a newer mapping would store otherwise are to be parsed. */
const STORED_AS = `v${MAPPING_VERSION}`;

/**
 * What a complete reading is known by, for the ledger: the content of its documents, which tells whether they are what is stored of its
 * range, and its pages.
 * @param digests of each page; undefined of one that cannot be known again
 * @param documents those that came and could be read
 * @param count how many came
 * @returns undefined where one of them was rejected, or came twice
 */
export function nameAnswer(
  client: Pick<Client, 'digestOf'>,
  digests: readonly (string | undefined)[],
  documents: readonly KnownDocument[],
  count: number,
): string | undefined {
  const isAll = documents.length === count && new Set(documents.map(({ id }) => id)).size === count;
  if (!digests.length || digests.includes(undefined) || !isAll) return undefined;
  return [STORED_AS, contentOf(client, documents), ...digests].join(' ');
}

/** The days of which a window's answer brings documents. */
export const widened = (days: DayRange): DayRange => ({ from: addDays(days.from, -WIDENED_DAYS), to: addDays(days.to, WIDENED_DAYS) });

/**
 * What is stored of a window, read before its first request is sent.
 * @param name what the same window's last answer is known by
 * @returns the identifiers of the window's own days; and that answer, where all that it brought is stored of its range and nothing else is
 */
export async function readStored(
  { client, warehouse }: Pick<Pipeline, 'client' | 'warehouse'>,
  { resource, userId, days }: { resource: Resource; userId: string; days: DayRange | undefined },
  name: string | undefined,
): Promise<{ ids: string[]; known?: KnownAnswer }> {
  const [version, content, ...pages] = name?.split(' ') ?? [];
  const isNamed = version === STORED_AS && days !== undefined;
  const rows = await readHashes(warehouse, resource, userId, { days: days && isNamed ? widened(days) : days, within: days });
  const ids = rows.flatMap(({ id, isWithin }) => (isWithin ? [id] : []));
  const documents = rows.map(({ id, hash }) => ({ id, hash }));
  return isNamed && contentOf(client, documents) === content ? { ids, known: { pages, documents } } : { ids };
}

function contentOf({ digestOf }: Pick<Client, 'digestOf'>, documents: readonly KnownDocument[]): string {
  const lines = documents.map(({ id, hash }) => `${hash} ${JSON.stringify(id)}\n`);
  return digestOf(Buffer.from(lines.sort().join('')));
}
