import { number, type Readable, readRows, text } from '../warehouse/rows.ts';
import { quoteName, quoteText } from '../warehouse/tables.ts';

/** Pairs of accounts, none removed and not known to be one person, that have documents with the same identifiers, and of which tables. */
export function listSharedDocuments(warehouse: Readable, tables: readonly string[]) {
  const counted = tables.map(
    table =>
      `SELECT a.user_id AS one, b.user_id AS other, ${quoteText(table)} AS collection, count(*) AS documents
       FROM ${quoteName(table)} a JOIN ${quoteName(table)} b ON a.id = b.id AND a.user_id < b.user_id GROUP BY ALL`,
  );
  return readRows(
    warehouse,
    { one: text, other: text, documents: number, collections: text },
    `SELECT one, other, sum(documents)::BIGINT, string_agg(collection, ', ' ORDER BY collection) FROM (${counted.join(' UNION ALL ')}) s
     JOIN sync.accounts x ON x.user_id = one AND x.state <> 'removed' JOIN sync.accounts y ON y.user_id = other AND y.state <> 'removed'
     WHERE x.service_user_id IS DISTINCT FROM y.service_user_id OR x.service_user_id IS NULL
     GROUP BY ALL ORDER BY ALL`,
  );
}
