import { existsSync } from 'node:fs';
import type { DuckDBConnection } from '@duckdb/node-api';
import type { Resource } from '../../../../schema/resource.ts';
import { RingneckError } from '../../../base/errors.ts';
import { realPath } from '../../../base/files.ts';
import { FORMAT } from '../../format.ts';
import { mapAll } from '../../mapping.ts';
import { number, orNull, text } from '../../rows.ts';
import { schemaName } from '../../snapshot/publish.ts';
import { quoteName, quoteText } from '../../sql.ts';
import { listTables, SORTED_BY, type Table } from '../../tables.ts';
import { Warehouse } from '../../warehouse.ts';
import { readRows, select } from '../database.ts';
import { openWaiting, waitForHolder } from '../file/open-file.ts';
import { type LakeOptions, LakeStore, SK_BLOCK, SK_SEQUENCE } from './lake-store.ts';
import { LAKE, withCatalogue } from './open-lake.ts';

/** Facts about a store itself: each has its own. */
const OWN_FACTS = `key IN ('views', 'compacted')`;

/** See `importFile` of warehouse/lake.ts. */
export async function importFile(
  file: string,
  { path, lake, resources }: { path: string; lake: LakeOptions; resources: readonly Resource[] },
): Promise<Record<string, number>> {
  const mappings = mapAll(resources);
  const tables = listTables(mappings);
  // Its tables and views.
  await (await Warehouse.open({ path, lake, resources })).close();
  const store = await LakeStore.open({ path, lake }, mappings);
  try {
    const connection = await store.connect();
    if (existsSync(`${realPath(file)}.wal`)) await takeInLog(realPath(file));
    await waitForHolder(file, () => connection.run(`ATTACH ${quoteText(file)} AS source (READ_ONLY)`));
    await ensureFormat(connection, file);
    const newest = mappings.map(({ table }) => `SELECT max(sk) AS sk FROM source.main.${quoteName(table)}`).join(' UNION ALL ');
    const [found] = await select(connection, { sk: orNull(number) }, `SELECT max(sk) FROM (${newest})`);
    await skipSks(lake, found?.sk ?? 0);
    return await store.transaction(connection, () => copyIn(connection, tables));
  } finally {
    await store.close();
  }
}

/** A process that was killed left commits in the log alone, which does not follow a file to another name. */
async function takeInLog(file: string): Promise<void> {
  const instance = await openWaiting(file, {});
  try {
    const connection = await instance.connect();
    await connection.run('CHECKPOINT');
    connection.closeSync();
  } finally {
    instance.closeSync();
  }
}

async function ensureFormat(connection: DuckDBConnection, file: string): Promise<void> {
  const [[format] = []] = await readRows(connection, `SELECT value FROM source.sync.meta WHERE key = 'format'`);
  if (Number(format) === FORMAT) return;
  throw new RingneckError(
    `${file} has format ${format}, and this program writes ${FORMAT}: open it once without RINGNECK_WAREHOUSE, as by ringneck status`,
  );
}

/** The next numbers come after those of the file. */
async function skipSks(lake: LakeOptions, newest: number): Promise<void> {
  const set = `SELECT setval('${SK_SEQUENCE}', greatest(last_value, ${Math.ceil(newest / SK_BLOCK) * SK_BLOCK})) AS n FROM ${SK_SEQUENCE}`;
  await withCatalogue(lake, connection => connection.run(`FROM postgres_query('catalogue', ${quoteText(set)})`));
}

async function copyIn(connection: DuckDBConnection, tables: readonly Table[]): Promise<Record<string, number>> {
  const rows: Record<string, number> = {};
  for (const table of tables) {
    const before = await digest(connection, LAKE, table);
    const wanted = await digest(connection, 'source', table);
    if (wanted.rows > 0) rows[table.name] = wanted.rows;
    // What an import that was interrupted has brought already.
    if (isSame(before, wanted)) continue;
    if (table.name === 'sync.meta') await connection.run(`DELETE FROM ${LAKE}.sync.meta WHERE NOT ${OWN_FACTS}`);
    else if (before.rows > 0) throw new RingneckError(`the lake has rows of its own in ${table.name}: nothing was imported`);
    const names = table.columns.map(({ name }) => quoteName(name)).join(', ');
    const order = SORTED_BY.filter(name => table.columns.some(column => column.name === name));
    await connection.run(
      `INSERT INTO ${LAKE}.${schemaName(table.name)} (${names}) SELECT ${names} FROM source.${schemaName(table.name)} WHERE ${countedOf(table)}
       ${order.length ? `ORDER BY ${order.join(', ')}` : ''}`,
    );
    if (!isSame(await digest(connection, LAKE, table), wanted))
      throw new RingneckError(`${table.name} was not copied whole: nothing was imported`);
  }
  return rows;
}

const countedOf = ({ name }: Table) => (name === 'sync.meta' ? `NOT ${OWN_FACTS}` : 'true');

const isSame = (a: Digest, b: Digest) => a.rows === b.rows && a.hash === b.hash;

interface Digest {
  rows: number;
  hash: string;
}

async function digest(connection: DuckDBConnection, database: string, table: Table): Promise<Digest> {
  const hash = `hash(${table.columns.map(({ name }) => quoteName(name)).join(', ')})`;
  const [found] = await select(
    connection,
    { rows: number, hash: text },
    `SELECT count(*), coalesce(sum(${hash}::HUGEINT), 0)::VARCHAR FROM ${database}.${schemaName(table.name)} WHERE ${countedOf(table)}`,
  );
  return found ?? { rows: 0, hash: '0' };
}
