import type { DuckDBConnection } from '@duckdb/node-api';
import { resources } from '../../../schema/index.ts';
import { mapAll } from '../mapping.ts';
import { isReason, reasonNaming } from '../reasons.ts';
import { flag, text } from '../rows.ts';
import { listCreated } from '../schema/views.ts';
import { ABOUT } from '../snapshot/metadata.ts';
import { quoteName, quoteText } from '../sql.ts';
import { readRows, select } from '../store/database.ts';
import { duckdb } from '../store/duckdb.ts';
import type { LakePlace } from '../store/lake/open-lake.ts';
import { LARGE_BYTES, Memory } from '../store/memory.ts';
import { listTables } from '../tables.ts';
import { openReader } from './open-reader.ts';

/** What is searched for: a name or an id as a word of its own, so that `ada` is not found in `adam`; a token inside of other text too. */
export interface Needle {
  /** How the word is spoken of: the word itself is never shown. */
  what: 'name' | 'service id' | 'token';
  text: string;
}

/** Where a word was found. */
export interface Place {
  what: Needle['what'];
  /** `table.column`, or a view. */
  where: string;
}

/** What is shorter may be a part of other data by chance. */
export const SHORTEST_INSIDE = 8;

/** What names and most ids are made of. */
const OF_WORD = 'A-Za-z0-9._-';

const escapeNeedle = (text: string) => text.replaceAll(/[\\^$.|?*+()[\]{}]/g, '\\$&');

/** A word of its own, as DuckDB and JavaScript both read it. */
const whole = (text: string) => `(^|[^${OF_WORD}])${escapeNeedle(text)}($|[^${OF_WORD}])`;

/**
 * Searches every text of a warehouse or a snapshot, read-only. The bytes of the file prove nothing: DuckDB compresses.
 * @throws TryLaterError naming the process that holds the file
 */
export async function searchDatabase(path: string, words: readonly Needle[]): Promise<Place[]> {
  const limits = { bytes: LARGE_BYTES, threads: 2 };
  const reader = await openReader({
    path,
    memoryLimit: `${limits.bytes}B`,
    threads: limits.threads,
    spill: `${path}.${process.pid}.tmp`,
  });
  const { connection } = reader;
  try {
    return await new Memory(limits).enough(connection, 'the search for what is left of somebody', async () => [
      ...(await searchTables(connection, words)),
      ...(await searchViews(connection, words)),
      ...(await searchCatalogue(connection, words)),
    ]);
  } finally {
    reader.close();
  }
}

/** Of the catalogue of a lake what may hold values of rows, and accepted events; the rest is what somebody has called things, which a lake's own search meets. */
const WITH_VALUES =
  /^(inbox$|ducklake_(file_column_stats|table_column_stats|file_partition_value|inlined_|snapshot_changes|data_file|delete_file|files_scheduled))/;

/**
 * Searches every text of a lake, and of the tables of its catalogue.
 * @throws RingneckError where it cannot be reached
 */
export async function searchLake(place: LakePlace, words: readonly Needle[]): Promise<Place[]> {
  const limits = { bytes: LARGE_BYTES, threads: 2 };
  const { attachLake, LAKE, LAKE_CONFIG, withCatalogue } = await import('../store/lake/open-lake.ts');
  const instance = await duckdb.DuckDBInstance.create(':memory:', { ...LAKE_CONFIG, memory_limit: `${limits.bytes}B`, threads: '2' });
  const connection = await instance.connect();
  try {
    await attachLake(instance, place, { isReader: true });
    await connection.run(`USE ${LAKE}`);
    const search = async () => [
      // Whose lake it is names a machine, which may be called as somebody is.
      ...(await searchTables(connection, words, { isAsked: name => name !== 'owner' })),
      ...(await searchViews(connection, words)),
      ...(await searchCatalogue(connection, words)),
    ];
    const found = await new Memory(limits).enough(connection, 'the search for what is left of somebody', search);
    const names = new Set((await readRows(connection, 'SELECT table_name FROM duckdb_tables()')).map(([name]) => String(name)));
    const inCatalogue = await withCatalogue(place, async catalogue => {
      await catalogue.run('USE catalogue');
      return searchTables(catalogue, words, { known: names, isAsked: name => WITH_VALUES.test(name) });
    });
    return [...found, ...inCatalogue.map(({ where, what }) => ({ what, where: `the catalogue’s ${where}` }))];
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

async function searchTables(
  connection: DuckDBConnection,
  words: readonly Needle[],
  { known: given, isAsked = () => true }: { known?: ReadonlySet<string>; isAsked?: (bare: string) => boolean } = {},
): Promise<Place[]> {
  const columns = await select(
    connection,
    { schema: text, bare: text, column: text, type: text },
    `SELECT c.schema_name, c.table_name, c.column_name, c.data_type
     FROM duckdb_columns() c JOIN duckdb_tables() t USING (table_oid, database_oid)
     WHERE t.database_name = current_database() AND NOT t.internal AND c.data_type SIMILAR TO '.*(VARCHAR|JSON|BLOB|UUID|ENUM).*'
     ORDER BY t.table_oid, c.column_index`,
  );
  const known = given ?? new Set(columns.map(({ bare }) => bare));
  const tables = new Map<string, typeof columns>();
  for (const column of columns.filter(({ bare }) => isAsked(bare))) {
    const place = `${quoteName(column.schema)}.${quoteName(column.bare)}`;
    tables.set(place, [...(tables.get(place) ?? []), column]);
  }
  const places: Place[] = [];
  for (const [place, own] of tables) {
    const hasUser = own.some(({ column }) => column.toLowerCase() === 'user_id');
    const asked = own.flatMap(({ schema, bare, column, type }) =>
      words.flatMap(word => {
        const table = schema === 'main' ? bare : `${schema}.${bare}`;
        const condition = conditionOf(word, { table, column, type, hasUser, isOurs: OURS.has(table), isOurWord: known.has(word.text) });
        return condition === undefined ? [] : [{ what: word.what, where: `${table}.${column}`, condition }];
      }),
    );
    if (!asked.length) continue;
    const [found = []] = await readRows(
      connection,
      `SELECT ${asked.map(({ condition }) => `coalesce(bool_or(${condition}), false)`).join(', ')} FROM ${place}`,
    );
    for (const [i, { what, where }] of asked.entries()) if (found[i]) places.push({ what, where });
  }
  return places;
}

interface Column {
  table: string;
  column: string;
  type: string;
  /** Whether its table says whose each row is. */
  hasUser: boolean;
  /** Whether its table is one that this version declares. */
  isOurs: boolean;
  /** Whether the word is one of the data. */
  isOurWord: boolean;
}

/** Where a row holds the word in this column. */
function conditionOf({ what, text }: Needle, { table, column, type, hasUser, isOurs, isOurWord }: Column): string | undefined {
  const value = `${quoteName(column)}::VARCHAR`;
  const equals = `${value} = ${quoteText(text)}`;
  const contains = `contains(${value}, ${quoteText(text)})`;
  const inside = `${contains} AND regexp_matches(${value}, ${quoteText(whole(text))})`;
  if (what !== 'name' && text.length < SHORTEST_INSIDE) return equals;
  if (what === 'token') return contains;
  if (what === 'service id') return inside;
  if (column.toLowerCase() === 'user_id') return equals;
  if (table === 'sync.runs' && column === 'request') return requestNames(text);
  if (isReason(table, column)) return `regexp_matches(${value}, ${quoteText(reasonNaming(text))})`;
  // `rest` and `sleep` may name an account, and are words of the data too.
  if (isOurWord) return undefined;
  if (!isOurs) return inside;
  // What else the ledger holds is of few values, which may name an account too: `complete`.
  if (table.startsWith('sync.') || !hasUser) return undefined;
  return `user_id IS NULL AND ${type === 'VARCHAR' ? equals : `contains(${value}, ${quoteText(JSON.stringify(text))})`}`;
}

/** Where what a run was asked for names a person; its keys and kinds may be names too. */
function requestNames(name: string): string {
  const quoted = escapeNeedle(JSON.stringify(name));
  return `regexp_matches(request::VARCHAR, ${quoteText(`"users"\\s*:\\s*\\[[^\\]]*${quoted}|"(user_id|userId)"\\s*:\\s*${quoted}`)})`;
}

/** Views and macros of ours that stand in no script: they speak of every table. */
const COMPOSED = ['sync.collections', 'sync.document_days'];

const listOurs = () => new Set([...listCreated().map(({ name }) => name), ...COMPOSED]);

/** A view or a macro that somebody made of one person; ours name nobody. */
async function searchViews(connection: DuckDBConnection, words: readonly Needle[]): Promise<Place[]> {
  const made = await select(
    connection,
    { where: text, schema: text, name: text, sql: text },
    `SELECT 'the view ' || view_name, schema_name, view_name, sql FROM duckdb_views()
       WHERE NOT internal AND database_name = current_database()
     UNION ALL SELECT 'the macro ' || function_name, schema_name, function_name, macro_definition FROM duckdb_functions()
       WHERE NOT internal AND database_name = current_database() AND macro_definition IS NOT NULL`,
  );
  const ours = listOurs();
  const tables = new Set((await readRows(connection, 'SELECT table_name FROM duckdb_tables()')).map(([name]) => name));
  const strange = made.filter(({ schema, name }) => !ours.has(schema === 'main' ? name : `${schema}.${name}`));
  return strange.flatMap(({ where, sql }) =>
    words
      .filter(word => !tables.has(word.text) && sql.includes(word.what === 'name' ? quoteText(word.text) : word.text))
      .map(({ what }) => ({ what, where })),
  );
}

/** What somebody has called things, and said of them: names, comments, values of an ENUM, defaults and conditions. */
async function searchCatalogue(connection: DuckDBConnection, words: readonly Needle[]): Promise<Place[]> {
  const here = 'NOT internal AND database_name = current_database()';
  const texts = await select(
    connection,
    { where: text, of: text, said: text, isName: flag },
    `SELECT 'the name of a table', schema_name || '.' || table_name, table_name, true FROM duckdb_tables() WHERE ${here}
     UNION ALL SELECT 'the name of a view', schema_name || '.' || view_name, view_name, true FROM duckdb_views() WHERE ${here}
     UNION ALL SELECT 'the name of a macro', schema_name || '.' || function_name, function_name, true FROM duckdb_functions() WHERE ${here}
     UNION ALL SELECT 'the name of a schema', schema_name, schema_name, true FROM duckdb_schemas() WHERE ${here}
     UNION ALL SELECT 'the name of a column of ' || table_name, schema_name || '.' || table_name, column_name, true
       FROM duckdb_columns() WHERE ${here}
     UNION ALL SELECT 'a comment on the table ' || table_name, schema_name || '.' || table_name, comment, false
       FROM duckdb_tables() WHERE ${here} AND comment IS NOT NULL
     UNION ALL SELECT 'a comment on the view ' || view_name, schema_name || '.' || view_name, comment, false
       FROM duckdb_views() WHERE ${here} AND comment IS NOT NULL
     UNION ALL SELECT 'a comment on the macro ' || function_name, schema_name || '.' || function_name, comment, false
       FROM duckdb_functions() WHERE ${here} AND comment IS NOT NULL
     UNION ALL SELECT 'a comment on ' || table_name || '.' || column_name, schema_name || '.' || table_name, comment, false
       FROM duckdb_columns() WHERE ${here} AND comment IS NOT NULL
     UNION ALL SELECT 'the type of ' || table_name || '.' || column_name, schema_name || '.' || table_name, data_type, false
       FROM duckdb_columns() WHERE ${here} AND data_type LIKE '%ENUM%'
     UNION ALL SELECT 'the default of ' || table_name || '.' || column_name, schema_name || '.' || table_name, column_default, false
       FROM duckdb_columns() WHERE ${here} AND column_default IS NOT NULL
     UNION ALL SELECT 'a condition of the table ' || table_name, schema_name || '.' || table_name, constraint_text, false
       FROM duckdb_constraints() WHERE database_name = current_database() AND constraint_type = 'CHECK'
     UNION ALL SELECT 'the type ' || type_name, schema_name || '.' || type_name, type_name || ' ' || labels::VARCHAR, false
       FROM duckdb_types() WHERE ${here} AND labels IS NOT NULL`,
  );
  const ours = new Set([...OURS.keys(), ...listOurs()]);
  return texts.flatMap(({ where, of, said, isName }) => {
    const own = of.replace(/^main\./, '');
    // What we say of our own speaks of nobody; what others have said of it instead may.
    if (of === 'sync' || (ours.has(own) && (isName || (OURS.get(own)?.has(said) ?? true)))) return [];
    const found = words.filter(word => (isName ? namesIt(said, word.text) : new RegExp(whole(word.text)).test(said)));
    return found.map(({ what }) => ({ what, where: isName ? `${where}: ${said}` : where }));
  });
}

/** In names of things words are joined by `_`, and capitals do not count. */
const namesIt = (name: string, word: string) =>
  new RegExp(`(^|[^a-z0-9])${escapeNeedle(word.toLowerCase())}($|[^a-z0-9])`).test(name.toLowerCase());

/** Our tables, and what is said of them and their columns. */
const OURS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  [...listTables(mapAll(resources)), ABOUT].map(({ name, comment, columns }) => [
    name,
    new Set([comment, ...columns.map(column => column.comment)]),
  ]),
);
