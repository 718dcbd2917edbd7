import { createHash } from 'node:crypto';
import type { DuckDBConnection } from '@duckdb/node-api';
import { parseJson } from '../../base/json.ts';
import { version } from '../../base/version.ts';
import { parseDocument } from '../documents/parse-document.ts';
import { readDocuments } from '../documents/read-documents.ts';
import type { Field, Mapping } from '../mapping.ts';
import { MAPPING_VERSION } from '../mapping.ts';
import { number, text } from '../rows.ts';
import { qualified, quoteText } from '../sql.ts';
import { readRows, select } from '../store/database.ts';
import { warehouseScript } from '../tables.ts';
import type { DocumentPage, WriteBatch } from '../write/write-batch.ts';

/** Documents in one step: their samples are in memory with them. */
const STEP = 200;

const hashes = new WeakMap<readonly Mapping[], string>();

/** Changes whenever a declaration does, or the program that reads by it. */
export function declarationsHash(mappings: readonly Mapping[]): string {
  const known = hashes.get(mappings);
  if (known) return known;
  const about = JSON.stringify([version, MAPPING_VERSION, warehouseScript(mappings), mappings.map(outlineAll)]);
  const hash = createHash('sha256').update(about).digest('base64url').slice(0, 22);
  hashes.set(mappings, hash);
  return hash;
}

const outlineAll = ({ root, lists }: Mapping): unknown[] => [outline(root), ...lists.map(list => outline(list.root))];

/** What the tables do not show of a declaration: which keys are promised. */
function outline(field: Field): unknown[] {
  const { key, promised, known } = field;
  return known ? [key, promised, undefined, [...known.values()].map(outline)] : [key, promised, field.about.kind, undefined];
}

/**
 * Reads again what `extra` and `sync.rejected` hold, with the declarations of today: a field learned later fills its column, a
 * learned Sample its series; a value that does not fit stays. May be stopped and repeated at any point.
 */
export async function evolveSchema(
  connection: DuckDBConnection,
  mappings: readonly Mapping[],
  write: (change: WriteBatch) => Promise<unknown>,
): Promise<void> {
  for (const mapping of mappings) {
    for await (const pages of pagesWithExtra(connection, mapping)) await writeAll(pages, write);
    await writeAll(await rejectedPages(connection, mapping), write);
  }
}

async function writeAll(pages: readonly DocumentPage[], write: (change: WriteBatch) => Promise<unknown>): Promise<void> {
  await Promise.all(pages.map(page => write({ page, samples: page.documents.reduce((sum, { samples }) => sum + samples, 0) })));
}

async function* pagesWithExtra(connection: DuckDBConnection, mapping: Mapping): AsyncGenerator<DocumentPage[]> {
  const table = qualified(mapping.table);
  const keys = await select(connection, { key: text }, `SELECT DISTINCT unnest(json_keys(extra)) FROM ${table} WHERE extra IS NOT NULL`);
  const evolvable = keys.map(({ key }) => key).filter(key => mapping.root.known.has(key));
  if (!evolvable.length) return;
  const has = evolvable.map(key => `list_contains(json_keys(extra), ${quoteText(key)})`).join(' OR ');
  const [[newest] = [-1]] = await readRows(connection, `SELECT max(sk) FROM ${table}`);
  for (let last = -1; ; ) {
    const documents = await readDocuments(
      connection,
      mapping,
      `extra IS NOT NULL AND (${has}) AND sk > ${last} AND sk <= ${newest} ORDER BY sk LIMIT ${STEP}`,
    );
    last = documents.at(-1)?.sk ?? last;
    if (!documents.length) return;
    yield documents.flatMap(({ userId, fetchedAt, contentHash, document }) => {
      const parsed = parseDocument(mapping, document);
      if (!parsed.document || parsed.document.hash === contentHash) return [];
      // Its drift was counted when it came.
      return [{ userId, mapping, requestedAt: fetchedAt, documents: [{ ...parsed.document, drift: [] }], rejected: [], removed: [] }];
    });
  }
}

async function rejectedPages(connection: DuckDBConnection, mapping: Mapping): Promise<DocumentPage[]> {
  const rows = await select(
    connection,
    { userId: text, document: text, requestedAt: number },
    `SELECT user_id, document::VARCHAR, fetched_at FROM sync.rejected WHERE collection = ${quoteText(mapping.resource.name)}`,
  );
  return rows.flatMap(({ userId, requestedAt, ...rejected }) => {
    const { document } = parseDocument(mapping, parseJson(rejected.document));
    return document ? [{ userId, mapping, requestedAt, documents: [document], rejected: [], removed: [] }] : [];
  });
}
