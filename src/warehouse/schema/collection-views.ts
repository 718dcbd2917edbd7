import type { DuckDBConnection } from '@duckdb/node-api';
import { resources } from '../../../schema/index.ts';
import { heartRate } from '../../../schema/resources/heart-rate.ts';
import { personalInfo } from '../../../schema/resources/personal-info.ts';
import { BOOKKEEPING } from '../mapping.ts';
import { json, text } from '../rows.ts';
import { qualified, quoteName, quoteText } from '../sql.ts';
import { select } from '../store/database.ts';

/** Somebody's copy of a table of ours has its columns, but not their comments. */
const HASH_COMMENT = BOOKKEEPING.find(({ name }) => name === 'content_hash')?.comment ?? '';

/** A table of documents, as it lies in a database. */
export interface DocumentTable {
  name: string;
  columns: readonly string[];
}

/** The document tables in the database in use, but for the one of who somebody is, which does not count among what is read day by day. */
export function listDocumentTables(connection: DuckDBConnection): Promise<DocumentTable[]> {
  return select(
    connection,
    { name: text, columns: json<string[]>() },
    `SELECT table_name, to_json(list(column_name))::VARCHAR FROM duckdb_columns()
     WHERE database_name = current_database() AND schema_name = 'main' AND NOT internal
     AND table_name <> ${quoteText(personalInfo.name)}
     GROUP BY table_name HAVING bool_or(column_name = 'content_hash' AND comment = ${quoteText(HASH_COMMENT)}) ORDER BY table_name`,
  );
}

/** The statements that make `sync.collections` and `sync.document_days` over these tables: they follow from the declarations, as the tables do. */
export function composeCollectionViews(present: readonly DocumentTable[]): string {
  const tables = present.map(({ name, columns }) => {
    const dayField = resources.find(resource => resource.name === name)?.dayField ?? 'day';
    return { name, dayColumn: columns.find(column => column === dayField) };
  });
  const names = [...tables.map(({ name, dayColumn }) => ({ name, dated: dayColumn !== undefined })), { name: heartRate.name, dated: true }];
  const days = tables.map(({ name, dayColumn }) => {
    const table = qualified(`main.${name}`);
    const day = dayColumn === undefined ? 'NULL::DATE' : quoteName(dayColumn);
    return `SELECT user_id, ${quoteText(name)} AS collection, ${day} AS day, 1 AS documents, 0 AS rejected FROM ${table}`;
  });
  days.push('SELECT user_id, collection, day, 0, 1 FROM sync.rejected WHERE day IS NOT NULL');
  return `CREATE OR REPLACE VIEW sync.collections AS
SELECT collection, dated FROM (VALUES
  ${names.map(({ name, dated }) => `(${quoteText(name)}, ${dated})`).join(',\n  ')}
) AS names (collection, dated);
COMMENT ON VIEW sync.collections IS 'What the pipeline reads';
COMMENT ON COLUMN sync.collections.collection IS 'The collection: a table of documents, or heart_rate';
COMMENT ON COLUMN sync.collections.dated IS 'Whether its documents belong to days';

CREATE OR REPLACE VIEW sync.document_days AS
SELECT user_id, collection, day, sum(documents)::BIGINT AS documents, sum(rejected)::BIGINT AS rejected FROM (
  ${days.join('\n  UNION ALL\n  ')}
) AS all_documents (user_id, collection, day, documents, rejected)
GROUP BY user_id, collection, day;
COMMENT ON VIEW sync.document_days IS 'How many documents there are of each account, collection and day';
COMMENT ON COLUMN sync.document_days.user_id IS 'The account, as named by \`account add\`';
COMMENT ON COLUMN sync.document_days.collection IS 'The collection: a table of documents';
COMMENT ON COLUMN sync.document_days.day IS 'The day of the documents; null where a collection has no dates';
COMMENT ON COLUMN sync.document_days.documents IS 'Stored documents [count]';
COMMENT ON COLUMN sync.document_days.rejected IS 'Documents that came and could not be stored [count]';
`;
}
