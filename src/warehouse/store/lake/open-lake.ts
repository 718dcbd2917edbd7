import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { messageOf, RingneckError, TryLaterError } from '../../../base/errors.ts';
import { isInBucket, type LakeAddress, showCatalogue } from '../../../base/lake-address.ts';
import { quoteText } from '../../sql.ts';
import { firstLine } from '../database.ts';
import { duckdb } from '../duckdb.ts';

/** What statements call it. */
export const LAKE = 'lake';
/** Its catalogue, as the extension attaches it. */
export const CATALOGUE = `__ducklake_metadata_${LAKE}`;

export interface LakePlace {
  address: LakeAddress;
  password?: string | undefined;
  s3: { key?: string | undefined; secret?: string | undefined; endpoint?: string | undefined; region: string };
  /** A folder with DuckDB's extensions; without one DuckDB fetches them. */
  extensions?: string | undefined;
}

/** A catalogue that holds none. */
export class NoLake extends RingneckError {}

/** For any DuckDB that has a lake: what it may load is what is loaded here. */
export const LAKE_CONFIG = {
  autoload_known_extensions: 'false',
  allow_community_extensions: 'false',
  allow_persistent_secrets: 'false',
};

/**
 * Rows of a table and a commit of no more than that lie in the catalogue until the next upkeep: a live document is no file of its own. Each is
 * written into a statement's text, which costs a backfill more than small files do, of which upkeep makes large ones.
 */
export const inlinedRows = (isLive: boolean): number => (isLive ? 1_000 : 10);

const bucketOf = (data: string) => /^s3:\/\/[^/]+/.exec(data)?.[0];

/**
 * Attaches a lake to a DuckDB.
 * @param options.isNew makes one where there is none
 * @throws RingneckError, one sentence: an extension, the catalogue or the data cannot be reached, or there is no lake
 */
export async function attachLake(instance: DuckDBInstance, place: LakePlace, { isNew = false, isReader = false } = {}): Promise<void> {
  const connection = await instance.connect();
  try {
    await loadExtensions(connection, place);
    await createSecrets(connection, place);
    await reachData(connection, place);
    const options = [`CREATE_IF_NOT_EXISTS ${isNew}`, ...(isReader ? ['READ_ONLY'] : [])];
    await connection.run(`ATTACH 'ducklake:ringneck_lake' AS ${LAKE} (${options.join(', ')})`).catch(error => {
      throw whyNotAttached(error, place.address);
    });
    // A commit fails where another one came since it began: with a repetition of DuckLake's own both would be kept.
    await connection.run('SET GLOBAL ducklake_max_retry_count = 0');
    await setInlining(connection, true);
  } finally {
    connection.closeSync();
  }
}

/** Sets how many rows of a commit may lie in the catalogue, for all connections. */
export async function setInlining(connection: DuckDBConnection, isLive: boolean): Promise<void> {
  await connection.run(`SET GLOBAL ducklake_default_data_inlining_row_limit = ${inlinedRows(isLive)}`);
}

/** May be repeated. */
export async function loadExtensions(connection: DuckDBConnection, { address, extensions }: LakePlace): Promise<void> {
  const names = ['ducklake', 'postgres_scanner', ...(isInBucket(address) ? ['httpfs'] : [])];
  for (const name of names) await load(connection, name, extensions);
}

/** How long a statement waits for who holds a table of the catalogue. */
const LOCK_MS = 5_000;

/**
 * Has the catalogue attached to a DuckDB of its own as `catalogue`, a database of Postgres like any other: no transaction of a lake goes on beside it.
 * @throws TryLaterError where it cannot be reached
 */
export async function withCatalogue<T>(
  place: LakePlace,
  work: (connection: DuckDBConnection, execute: (statement: string) => Promise<void>) => Promise<T>,
): Promise<T> {
  const instance = await duckdb.DuckDBInstance.create(':memory:', LAKE_CONFIG);
  const connection = await instance.connect();
  try {
    await loadExtensions(connection, place);
    await createSecrets(connection, place);
    const options = `options=''-c lock_timeout=${LOCK_MS}''`;
    await connection.run(`ATTACH '${options}' AS catalogue (TYPE postgres, SECRET ringneck_catalogue)`).catch(error => {
      throw whyNotAttached(error, place.address);
    });
    return await work(connection, async statement => {
      await connection.run(`CALL postgres_execute('catalogue', ${quoteText(statement)}, use_transaction => false)`);
    });
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

async function load(connection: DuckDBConnection, name: string, folder: string | undefined): Promise<void> {
  try {
    if (folder === undefined) await connection.run(`INSTALL ${name}; LOAD ${name}`);
    else await connection.run(`LOAD ${quoteText(join(folder, `${name}.duckdb_extension`))}`);
  } catch (error) {
    const fix =
      folder === undefined
        ? 'where DuckDB cannot fetch it, RINGNECK_DUCKDB_EXTENSIONS names a folder that has it'
        : 'see RINGNECK_DUCKDB_EXTENSIONS';
    throw new RingneckError(`DuckDB’s extension ${name} cannot be loaded: ${firstLine(error)} (${fix})`, 1, { cause: error });
  }
}

/** Never in the text of ATTACH, which stands in errors. */
export async function createSecrets(connection: DuckDBConnection, { address, password, s3 }: LakePlace): Promise<void> {
  const { host, port, user, catalogue, data } = address;
  const option = (name: string, value: string | undefined) => (value === undefined ? [] : [`${name} ${quoteText(value)}`]);
  const of = (type: string, options: readonly string[][]) => `(${[`TYPE ${type}`, ...options.flat()].join(', ')})`;
  const postgres = [option('HOST', host), option('PORT', port?.toString()), option('USER', user), option('DATABASE', catalogue)];
  const lake = [
    [`METADATA_PATH ''`, `METADATA_PARAMETERS MAP {'TYPE': 'postgres', 'SECRET': 'ringneck_catalogue'}`],
    option('DATA_PATH', data),
  ];
  const statements = [
    `CREATE OR REPLACE SECRET ringneck_catalogue ${of('postgres', [...postgres, option('PASSWORD', password)])}`,
    `CREATE OR REPLACE SECRET ringneck_lake ${of('ducklake', lake)}`,
  ];
  if (isInBucket(address)) {
    const url = s3.endpoint === undefined ? undefined : new URL(s3.endpoint);
    const endpoint = url ? [option('ENDPOINT', url.host), option('URL_STYLE', 'path'), [`USE_SSL ${url.protocol === 'https:'}`]] : [];
    const keys = [option('KEY_ID', s3.key), option('SECRET', s3.secret), option('REGION', s3.region)];
    statements.push(`CREATE OR REPLACE SECRET ringneck_bucket ${of('s3', [...keys, ...endpoint, option('SCOPE', bucketOf(data))])}`);
  }
  for (const statement of statements) {
    await connection.run(statement).catch(() => {
      // What DuckDB says would quote the statement.
      throw new RingneckError('DuckDB does not take the user, password or key of the lake');
    });
  }
}

/** Asks for a name that nothing has: a listing that is short in a large bucket. */
async function reachData(connection: DuckDBConnection, { address: { data, ...rest } }: LakePlace): Promise<void> {
  if (!isInBucket({ data, ...rest })) {
    try {
      accessSync(data, constants.R_OK | constants.X_OK);
    } catch (error) {
      throw new RingneckError(`the lake’s folder cannot be read: ${messageOf(error)}`, 1, { cause: error });
    }
    return;
  }
  try {
    await connection.run(`FROM glob(${quoteText(`${data}ringneck-asks-*`)})`);
  } catch (error) {
    throw new TryLaterError(`the lake’s bucket ${bucketOf(data)} cannot be reached: ${firstLine(error)}`, { cause: error });
  }
}

function whyNotAttached(error: unknown, address: LakeAddress): RingneckError {
  const said = messageOf(error);
  const where = showCatalogue(address);
  const [, refused] = /Unable to connect to Postgres at .*?: (.*)/s.exec(said) ?? [];
  if (refused) return new TryLaterError(`the lake’s catalogue ${where} cannot be reached: ${firstLine(refused)}`, { cause: error });
  if (/does not exist - and creating a new DuckLake/.test(said)) {
    return new NoLake(`there is no lake in the catalogue ${where} yet: ringneck lake init makes it`, 1, { cause: error });
  }
  return new RingneckError(`the lake ${where} cannot be opened: ${firstLine(error)}`, 1, { cause: error });
}
