import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import type { Resource } from '../../../schema/resource.ts';
import { mapAll } from '../mapping.ts';
import { number, oneOf, orNull, readValue, text, text as textOf } from '../rows.ts';
import { createViews, listCreated, readScripts } from '../schema/views.ts';
import { qualified } from '../sql.ts';
import { select } from '../store/database.ts';
import { duckdb } from '../store/duckdb.ts';
import { isWrittenByEntries, listTables, warehouseScript } from '../tables.ts';
import { openReader } from './open-reader.ts';

/** In the order in which they are shown; `other` is what somebody else made in the file. */
export const GROUPS = ['views', 'macros', 'documents', 'series', 'study', 'ledger', 'other'] as const;
export type Group = (typeof GROUPS)[number];

/** The views to begin with; the scripts have them in the order in which they build on each other. */
const FIRST = ['daily', 'nights', 'naps', 'weekly', 'baselines'];

export interface CatalogueColumn {
  name: string;
  type: string;
  unit: string | null;
  meaning: string;
}

export interface CatalogueEntry {
  /** As statements name it: `sleep`, `sync.windows`. */
  name: string;
  kind: 'table' | 'view' | 'macro' | 'table macro';
  group: Group;
  meaning: string;
  /** The paragraph of the specification, where it has one. */
  paragraph: string | null;
  /** Of a table; null for others, and where there is no file. */
  rows: number | null;
  columns: readonly CatalogueColumn[];
  /** How a macro is called: `local(ts, utc_offset)`. */
  calls: readonly string[];
  /** The tables that a view reads, through other views too. */
  reads: readonly string[];
  /** The script of `schema/views/` that makes it. */
  script: string | null;
  /** The statement that makes a view or macro. */
  sql: string | null;
}

export interface Catalogue {
  entries: readonly CatalogueEntry[];
  /** Somebody whose rows an example can ask for. */
  person: string | null;
}

/**
 * What a warehouse or a snapshot holds, as the file itself says.
 * @throws TryLaterError naming the process that holds the file, after waiting for it
 */
export async function readCatalogue(path: string, resources: readonly Resource[]): Promise<Catalogue> {
  const reader = await openReader({ path, memoryLimit: '256MB', spill: `${path}.${process.pid}.tmp` });
  try {
    const entries = await readEntries(reader.connection, resources);
    const tables = entries.filter(({ kind, group }) => kind === 'table' && group !== 'other');
    const counts = tables.map(({ name }) => `(SELECT count(*) FROM ${qualified(name)})`);
    const [rows = []] = counts.length ? await reader.read(`SELECT ${counts.join(', ')}`) : [];
    for (const [i, table] of tables.entries()) table.rows = number(rows[i] ?? null);
    const accounts = tables.some(({ name }) => name === 'sync.accounts');
    const person = accounts ? await readValue(reader, orNull(textOf), 'SELECT min(user_id) FROM sync.accounts') : null;
    return { entries, person: person ?? null };
  } finally {
    reader.close();
  }
}

/** What a warehouse of this version holds, before there is one. */
export async function declareCatalogue(resources: readonly Resource[]): Promise<Catalogue> {
  return using(await duckdb.DuckDBInstance.create(':memory:'), async connection => {
    await connection.run(warehouseScript(mapAll(resources)));
    await createViews(connection);
    return { entries: await readEntries(connection, resources), person: null };
  });
}

async function using<T>(instance: DuckDBInstance, work: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
  try {
    const connection = await instance.connect();
    try {
      return await work(connection);
    } finally {
      connection.closeSync();
    }
  } finally {
    instance.closeSync();
  }
}

const NAME = (schema: string, name: string) => `CASE ${schema} WHEN 'main' THEN ${name} ELSE ${schema} || '.' || ${name} END`;
const OURS = 'NOT internal AND database_name = current_database()';

async function readEntries(connection: DuckDBConnection, resources: readonly Resource[]): Promise<CatalogueEntry[]> {
  const relations = await select(
    connection,
    { name: text, kind: oneOf(['table', 'view']), comment: orNull(text), sql: orNull(text) },
    `SELECT ${NAME('schema_name', 'table_name')}, 'table', comment, NULL FROM duckdb_tables() WHERE ${OURS}
     UNION ALL SELECT ${NAME('schema_name', 'view_name')}, 'view', comment, sql FROM duckdb_views() WHERE ${OURS}`,
  );
  const columns = await select(
    connection,
    { of: text, column: text, type: text, comment: orNull(text) },
    `SELECT ${NAME('schema_name', 'table_name')}, column_name, data_type, comment FROM duckdb_columns() WHERE ${OURS} ORDER BY column_index`,
  );
  const macros = await select(
    connection,
    { name: text, parameters: text, comment: orNull(text), sql: orNull(text), kind: oneOf(['macro', 'table macro']) },
    `SELECT ${NAME('schema_name', 'function_name')}, array_to_string(parameters, ', '), comment, macro_definition, replace(function_type, '_', ' ')
     FROM duckdb_functions() WHERE ${OURS} AND function_type IN ('macro', 'table_macro') ORDER BY len(parameters)`,
  );
  const order = listOrder(resources);
  const entry = ({
    name,
    kind,
    comment,
    sql,
  }: Pick<CatalogueEntry, 'name' | 'kind' | 'sql'> & { comment: string | null }): CatalogueEntry => {
    const { script, statement } = findStatement(name);
    const group = groupOf(name, kind, resources, order);
    return { name, kind, group, ...splitParagraph(comment), rows: null, columns: [], calls: [], reads: [], script, sql: statement ?? sql };
  };
  const entries = relations.map(relation => ({
    ...entry(relation),
    columns: columns.filter(({ of }) => of === relation.name).map(describeColumn),
    reads: relation.kind === 'view' ? listReads(connection, relation.name, order) : [],
  }));
  for (const macro of new Map(macros.toReversed().map(one => [one.name, one])).values()) {
    const alike = macros.filter(({ name }) => name === macro.name);
    entries.push({ ...entry(macro), columns: [], reads: [], calls: alike.map(({ name, parameters }) => `${name}(${parameters})`) });
  }
  const place = ({ name, group }: CatalogueEntry) => {
    const known = order.indexOf(name);
    return GROUPS.indexOf(group) * 1000 + (known < 0 ? 900 : known + (name.startsWith('sync.') ? 500 : 0));
  };
  return entries.sort((a, b) => place(a) - place(b) || (a.name < b.name ? -1 : 1));
}

/** The names of ours: what the scripts make, then the tables in the order of the specification, heart rate and the ledger. */
function listOrder(resources: readonly Resource[]): string[] {
  const created = listCreated().map(({ name }) => name);
  const first = FIRST.filter(name => created.includes(name));
  return [...new Set([...first, ...created]), ...listTables(mapAll(resources)).map(({ name }) => name)];
}

function groupOf(name: string, kind: CatalogueEntry['kind'], resources: readonly Resource[], order: readonly string[]): Group {
  if (name.startsWith('sync.') && (kind === 'table' || !order.includes(name))) return 'ledger';
  if (!order.includes(name)) return 'other';
  if (kind !== 'table') return kind === 'view' ? 'views' : 'macros';
  if (isWrittenByEntries({ name })) return 'study';
  return mapAll(resources).some(({ table }) => table === name) ? 'documents' : 'series';
}

/** `… one document a day. (2.3)`: what it is, and where the specification says so. */
function splitParagraph(comment: string | null): { meaning: string; paragraph: string | null } {
  const [, meaning = '', paragraph = null] = /^(.*?)(?:\s*\((\d+(?:\.\d+)+)\))?$/s.exec(comment ?? '') ?? [];
  return { meaning, paragraph };
}

const NUMBER = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\))$/;

/** `Time in bed [s]`: the unit of a number stands in the comment in brackets, of anything else at its end. */
function describeColumn({ column: name, type, comment }: { column: string; type: string; comment: string | null }): CatalogueColumn {
  const unit = (NUMBER.test(type) ? /\s*\[([^\]]+)\]/ : /\s*\[([^\]]+)\]$/).exec(comment ?? '');
  return { name, type, unit: unit?.[1] ?? null, meaning: (comment ?? '').replace(unit?.[0] ?? '', '') };
}

function listReads(connection: DuckDBConnection, view: string, order: readonly string[]): string[] {
  try {
    const found = connection.getTableNames(`SELECT * FROM ${qualified(view)}`, true);
    // `main.sleep AS s`
    const names = found.map(name =>
      name
        .replace(/ AS .*$/i, '')
        .replaceAll('"', '')
        .replace(/^main\./, ''),
    );
    return [...new Set(names)].sort((a, b) => order.indexOf(a) - order.indexOf(b) || (a < b ? -1 : 1));
  } catch {
    // A view of somebody else whose table is gone.
    return [];
  }
}

/** The statement as it was laid out by hand: DuckDB keeps it as one line. */
function findStatement(name: string): { script: string | null; statement: string | null } {
  // A name of somebody else may have any characters.
  const literally = name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  for (const { name: script, sql } of readScripts()) {
    const statement = new RegExp(`^CREATE OR REPLACE (?:VIEW|MACRO) ${literally}\\b.*?;$`, 'ms').exec(sql)?.[0];
    if (statement) return { script, statement };
  }
  return { script: null, statement: null };
}
