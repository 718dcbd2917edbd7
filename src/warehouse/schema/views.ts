import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { DuckDBConnection } from '@duckdb/node-api';
import { RingneckError } from '../../base/errors.ts';
import { json, oneOf, orNull, text } from '../rows.ts';
import { qualified, quoteName, quoteText } from '../sql.ts';
import { select } from '../store/database.ts';
import type { Store } from '../store/store.ts';
import type { Table } from '../tables.ts';
import { composeCollectionViews, type DocumentTable, listDocumentTables } from './collection-views.ts';
import { type ColumnSource, openQuery } from './column-sources.ts';

interface Script {
  name: string;
  sql: string;
}

/** What a script makes: `CREATE OR REPLACE VIEW nights AS …`. */
const CREATES = /^CREATE OR REPLACE (VIEW|MACRO) (\w+(?:\.\w+)?)/gm;

export interface Created {
  kind: 'view' | 'macro';
  /** As statements name it: `nights`, `sync.coverage`. */
  name: string;
}

const FOLDER = new URL('../../../schema/views/', import.meta.url);
let scripts: readonly Script[] | undefined;

/** The hand-written views and macros for analysts, as the files of `schema/views/` have them. */
export function readScripts(): readonly Script[] {
  scripts ??= inOrder(
    readdirSync(FOLDER)
      .filter(file => file.endsWith('.sql'))
      .sort()
      .map(file => ({ name: file.slice(0, -4), sql: readFileSync(new URL(file, FOLDER), 'utf8') })),
  );
  return scripts;
}

/** Each script after those whose views and macros it uses, as its first line names them: `-- after: macros, nights`. */
export function inOrder(scripts: readonly Script[]): Script[] {
  const ordered: Script[] = [];
  const isThere = (name: string) => ordered.some(script => script.name === name);
  const isNext = ({ name, sql }: Script) => !isThere(name) && (/^-- after: (.+)$/m.exec(sql)?.[1]?.split(', ').every(isThere) ?? true);
  while (ordered.length < scripts.length) {
    const next = scripts.find(isNext);
    if (!next) {
      const left = scripts.filter(({ name }) => !isThere(name)).map(({ name }) => `${name}.sql`);
      throw new Error(`${left.join(', ')}: after a script that is not there, or after each other`);
    }
    ordered.push(next);
  }
  return ordered;
}

/** The first query to run of a view, where its script has one: `-- example of nights: SELECT …`. It asks for ada. */
export function findExample(view: string): string | undefined {
  const examples = readScripts().flatMap(({ sql }) => [...sql.matchAll(/^-- example of (\S+): (.*)$/gm)]);
  return examples.find(([, name]) => name === view)?.[2];
}

/** The names that the hand-written scripts make, in their order. */
export function listCreated(): Created[] {
  return createdBy(readScripts());
}

function createdBy(scripts: readonly Script[]): Created[] {
  return scripts.flatMap(({ sql }) =>
    [...sql.matchAll(CREATES)].map(([, kind, name = '']): Created => ({ kind: kind === 'VIEW' ? 'view' : 'macro', name })),
  );
}

/** Makes all views and macros, with their comments, in the database in use, whose tables are there. */
export async function createViews(connection: DuckDBConnection): Promise<void> {
  await runScripts(connection, allScripts(await listDocumentTables(connection)));
}

async function runScripts(
  connection: DuckDBConnection,
  scripts: readonly Script[],
  { commentsOnAll } = { commentsOnAll: true },
): Promise<void> {
  for (const { sql } of scripts) await connection.run(commentsOnAll ? sql : sql.replace(COMMENTS, ''));
  if (commentsOnAll) await inheritComments(connection, scripts);
}

/** Those on columns and macros. */
const COMMENTS = /^COMMENT ON (?:COLUMN|MACRO(?: TABLE)?) \S+ IS\s+'(?:[^']|'')*';$/gm;

const VIEW = /^CREATE OR REPLACE VIEW (\w+(?:\.\w+)?) AS\n(.*?);$/gms;

/** A view's column without a comment takes the one of the column that it is, where all columns that it may be have the same. */
async function inheritComments(connection: DuckDBConnection, scripts: readonly Script[]): Promise<void> {
  const comments = await readComments(connection);
  const statements: string[] = [];
  for (const [, view = '', query = ''] of scripts.flatMap(({ sql }) => [...sql.matchAll(VIEW)])) {
    const mute = [...comments].filter(([, { relation, comment }]) => relation === view && comment === null);
    if (!mute.length) continue;
    const sourcesOf = await openQuery(connection, query);
    for (const [key, { column }] of mute) {
      const [comment, ...others] = new Set(sourcesOf(column).flatMap(source => comments.get(keyOfColumn(source))?.comment ?? []));
      if (comment === undefined || others.length) continue;
      comments.set(key, { relation: view, column, comment });
      statements.push(`COMMENT ON COLUMN ${qualified(view)}.${quoteName(column)} IS ${quoteText(comment)}`);
    }
  }
  if (statements.length) await connection.run(statements.join(';\n'));
}

const keyOfColumn = ({ relation, column }: ColumnSource) => `${relation}.${column}`;

async function readComments(connection: DuckDBConnection): Promise<Map<string, ColumnSource & { comment: string | null }>> {
  const rows = await select(
    connection,
    { relation: text, column: text, comment: orNull(text) },
    `SELECT CASE schema_name WHEN 'main' THEN table_name ELSE schema_name || '.' || table_name END, column_name, comment
     FROM duckdb_columns() WHERE NOT internal AND database_name = current_database()`,
  );
  return new Map(rows.map(row => [keyOfColumn(row), row]));
}

const allScripts = (tables: readonly DocumentTable[]): Script[] => [
  { name: 'collections', sql: composeCollectionViews(tables) },
  ...readScripts(),
];

/** What `sync.meta` says of the views in the file. */
interface Known {
  /** `view nights`, `macro local`: what is ours under those names. */
  ours: readonly string[];
  /** Of the scripts, the tables whose comments they take, and what they made; empty while it is being made. */
  hash: string;
}

/** What has a name in the file. */
interface Present {
  kind: 'table' | 'view' | 'macro';
  name: string;
  /** Its columns or parameters, and all comments. */
  about: string;
}

/**
 * Makes the views and macros of this version, and drops those that an earlier version had. Where they are there as this version makes
 * them, nothing is written; one that somebody changed is made anew. What others made under other names is left alone.
 * @returns the tables of documents over which they stand
 * @throws RingneckError when something of somebody else has one of their names
 */
export async function ensureViews(
  store: Pick<Store, 'transaction' | 'commentsOnAll'>,
  connection: DuckDBConnection,
  tables: readonly Table[],
): Promise<DocumentTable[]> {
  const [row] = await select(connection, { known: json<Known>() }, `SELECT value FROM sync.meta WHERE key = 'views'`);
  const known = row?.known ?? { ours: [], hash: '' };
  const documentTables = await listDocumentTables(connection);
  const scripts = allScripts(documentTables);
  const about = JSON.stringify([scripts, tables]);
  const created = createdBy(scripts).map(keyOf);
  const present = await readPresent(connection);
  const ours = new Set(known.ours);
  if (known.hash === hashOf(about, present, ours)) return documentTables;
  refuseStrangers(present, created, ours);
  // Noted before they are made: after a crash in between they are known for ours.
  await noteKnown(store, connection, { ours: [...new Set([...known.ours, ...created])], hash: '' });
  await store.transaction(connection, async () => {
    for (const gone of present.filter(one => ours.has(keyOf(one)) && !created.includes(keyOf(one)))) await drop(connection, gone);
    await runScripts(connection, scripts, store);
  });
  await noteKnown(store, connection, { ours: created, hash: hashOf(about, await readPresent(connection), new Set(created)) });
  return documentTables;
}

const keyOf = ({ kind, name }: Created | Present) => `${kind} ${name}`;

function hashOf(about: string, present: readonly Present[], ours: ReadonlySet<string>): string {
  return createHash('sha256')
    .update(JSON.stringify([about, present.filter(one => ours.has(keyOf(one)))]))
    .digest('base64url');
}

function noteKnown(store: Pick<Store, 'transaction'>, connection: DuckDBConnection, known: Known): Promise<void> {
  return store.transaction(connection, async () => {
    await connection.run(`DELETE FROM sync.meta WHERE key = 'views'`);
    await connection.run(`INSERT INTO sync.meta (key, value) VALUES ('views', ${quoteText(JSON.stringify(known))})`);
  });
}

async function drop(connection: DuckDBConnection, { kind, name }: Present): Promise<void> {
  if (kind === 'view') {
    await connection.run(`DROP VIEW IF EXISTS ${qualified(name)}`);
    return;
  }
  await connection.run(`DROP MACRO IF EXISTS ${qualified(name)}`);
  await connection.run(`DROP MACRO TABLE IF EXISTS ${qualified(name)}`);
}

/**
 * Tables, views and macros in the database in use. What views and macros do is not compared: DuckDB words it differently once it has read
 * it from the file. But whoever replaces one by another loses its comments.
 */
async function readPresent(connection: DuckDBConnection): Promise<Present[]> {
  const rows = await select(
    connection,
    { kind: oneOf(['table', 'view', 'macro']), schema: text, bare: text, about: orNull(text) },
    `SELECT 'table', schema_name, table_name, NULL FROM duckdb_tables() WHERE NOT internal AND database_name = current_database()
     UNION ALL
     SELECT 'view', v.schema_name, v.view_name, concat_ws(chr(10), v.comment, c.comments)
     FROM duckdb_views() v LEFT JOIN (
       SELECT database_oid, table_oid, string_agg(concat(column_name, ' ', comment), chr(10) ORDER BY column_index) AS comments
       FROM duckdb_columns() GROUP BY database_oid, table_oid
     ) c ON c.database_oid = v.database_oid AND c.table_oid = v.view_oid
     WHERE NOT v.internal AND v.database_name = current_database()
     UNION ALL
     SELECT 'macro', schema_name, function_name, concat_ws(chr(10), function_type, CAST(parameters AS VARCHAR), comment)
     FROM duckdb_functions() WHERE NOT internal AND database_name = current_database()
     ORDER BY ALL`,
  );
  return rows.map(({ kind, schema, bare, about }) => ({
    kind,
    // DuckDB's names are the same in either case.
    name: (schema === 'main' ? bare : `${schema}.${bare}`).toLowerCase(),
    about: about ?? '',
  }));
}

function refuseStrangers(present: readonly Present[], created: readonly string[], ours: ReadonlySet<string>): void {
  // Tables and views share their names.
  const taken = present.filter(one => created.includes(keyOf({ ...one, kind: one.kind === 'macro' ? 'macro' : 'view' })));
  const strangers = taken.filter(one => !ours.has(keyOf(one))).map(keyOf);
  if (strangers.length) {
    throw new RingneckError(
      `the warehouse has the ${strangers.join(', the ')}, which Ringneck did not make and whose name it needs: rename it, or use another data folder`,
    );
  }
}
