import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { messageOf, RingneckError, TryLaterError, UsageError } from '../../../base/errors.ts';
import { ensureFolder } from '../../../base/files.ts';
import { isInBucket, type LakeAddress, showCatalogue } from '../../../base/lake-address.ts';
import { quoteName, quoteText } from '../../sql.ts';
import { firstLine, readRows } from '../database.ts';
import { duckdb } from '../duckdb.ts';
import { OWNER_TABLE, SK_BLOCK, SK_SEQUENCE } from './lake-store.ts';
import { MARK, writeMark } from './mark.ts';
import { attachLake, LAKE, LAKE_CONFIG, type LakePlace, loadExtensions, NoLake, withCatalogue } from './open-lake.ts';

export interface MadeLake {
  /** Whether it was there already. */
  isOld: boolean;
  /** The role that may only read the catalogue; null where there is none, and nobody said who may make one. */
  reader: string | null;
  /** Its password, told once; null where the role was there already. */
  readerPassword: string | null;
}

/** See `initLake` of warehouse/lake.ts. */
export async function initLake(place: LakePlace, maker: string | undefined): Promise<MadeLake> {
  const reader = `${place.address.user}_reader`;
  const readerPassword = maker === undefined ? null : await makeRoles(place, maker, reader);
  const isOld = await using(async (instance, connection) => {
    const isOld = await attachOrMake(instance, connection, place);
    await writeMark(connection, place.address);
    await connection.run(`USE ${LAKE}`);
    // Moments at equal distances take nearly nothing.
    for (const [option, value] of Object.entries({ parquet_compression: 'zstd', parquet_version: '2' })) {
      await connection.run(`CALL ducklake_set_option('${LAKE}', '${option}', '${value}')`);
    }
    await connection.run('CREATE SCHEMA IF NOT EXISTS ringneck');
    await connection.run(`CREATE TABLE IF NOT EXISTS ${OWNER_TABLE} (folder VARCHAR, host VARCHAR, token VARCHAR, since TIMESTAMP)`);
    return isOld;
  });
  return withCatalogue(place, async (connection, execute) => {
    await execute(`CREATE SEQUENCE IF NOT EXISTS ${SK_SEQUENCE} INCREMENT ${SK_BLOCK} START 1`);
    const hasReader = await finds(connection, 'catalogue', 'pg_roles', 'rolname', reader);
    if (!hasReader) return { isOld, reader: null, readerPassword: null };
    const to = quoteName(reader);
    await execute(`GRANT USAGE ON SCHEMA public TO ${to}`);
    await execute(`GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${to}`);
    // The rows of small commits lie in tables that come later.
    await execute(`ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO ${to}`);
    return { isOld, reader, readerPassword };
  });
}

/** @returns whether it was there */
async function attachOrMake(instance: DuckDBInstance, connection: DuckDBConnection, place: LakePlace): Promise<boolean> {
  if (!isInBucket(place.address)) ensureFolder(place.address.data);
  try {
    await attachLake(instance, place);
    return true;
  } catch (error) {
    if (!(error instanceof NoLake)) throw error;
  }
  await ensureNobodys(connection, place);
  await attachLake(instance, place, { isNew: true });
  return false;
}

/** @throws UsageError where something lies there, or it lies in the place of another lake: upkeep removes every file that its catalogue does not know */
async function ensureNobodys(connection: DuckDBConnection, { address }: LakePlace): Promise<void> {
  const { data } = address;
  const found = isInBucket(address)
    ? await readRows(connection, `SELECT 1 FROM glob(${quoteText(`${data}**`)}) LIMIT 1`)
    : readdirSync(data);
  if (found.length)
    throw new UsageError(`${data} holds files already: name a place of the lake’s own, for it removes what it does not know`);
  const parts = data.split('/');
  for (let length = parts.length - 2; length >= (isInBucket(address) ? 3 : 1); length--) {
    const above = `${parts.slice(0, length).join('/')}/`;
    // A name without a wildcard is not looked up in a bucket, whose key may not be one for all of it.
    const marks = await readRows(connection, `FROM glob(${quoteText(`${above}${MARK}*`)})`).catch(() => []);
    if (marks.length)
      throw new UsageError(`${data} lies in the place of another lake, ${above}, which removes what it does not know: name another place`);
  }
}

async function using<T>(work: (instance: DuckDBInstance, connection: DuckDBConnection) => Promise<T>): Promise<T> {
  const instance = await duckdb.DuckDBInstance.create(':memory:', LAKE_CONFIG);
  const connection = await instance.connect();
  try {
    return await work(instance, connection);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** @returns the password of a reader that was made */
function makeRoles(place: LakePlace, maker: string, reader: string): Promise<string | null> {
  const { address, password } = place;
  return using(async (_, connection) => {
    await loadExtensions(connection, place);
    await attachMaker(connection, address, maker);
    const has = (table: string, column: string, name: string) => finds(connection, 'maker', table, column, name);
    if (!(await has('pg_roles', 'rolname', address.user))) {
      const secret = password === undefined ? '' : ` PASSWORD ${quoteText(password)}`;
      await execute(connection, `CREATE ROLE ${quoteName(address.user)} LOGIN${secret}`);
    }
    const isNew = !(await has('pg_roles', 'rolname', reader));
    const readerPassword = isNew ? randomBytes(18).toString('base64url') : null;
    if (readerPassword) await execute(connection, `CREATE ROLE ${quoteName(reader)} LOGIN PASSWORD ${quoteText(readerPassword)}`);
    if (!(await has('pg_database', 'datname', address.catalogue))) {
      await execute(connection, `CREATE DATABASE ${quoteName(address.catalogue)} OWNER ${quoteName(address.user)}`);
    }
    return readerPassword;
  });
}

async function finds(connection: DuckDBConnection, database: string, table: string, column: string, name: string): Promise<boolean> {
  const asked = `SELECT 1 AS found FROM ${table} WHERE ${column} = ${quoteText(name)}`;
  return (await readRows(connection, `FROM postgres_query(${quoteText(database)}, ${quoteText(asked)})`)).length > 0;
}

/** The password is found as Postgres' own tools find it. */
async function attachMaker(connection: DuckDBConnection, address: LakeAddress, maker: string): Promise<void> {
  const { host, port } = address;
  const options = Object.entries({ HOST: host, PORT: port?.toString(), USER: maker, DATABASE: 'postgres' });
  const given = options.flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${quoteText(value)}`]));
  await connection.run(`CREATE SECRET ringneck_maker (TYPE postgres, ${given.join(', ')})`);
  await connection.run(`ATTACH '' AS maker (TYPE postgres, SECRET ringneck_maker)`).catch(error => {
    const said = firstLine(messageOf(error).replace(/^.*?Unable to connect to Postgres at .*?: /s, ''));
    throw new TryLaterError(`${maker} cannot sign in to Postgres for the catalogue ${showCatalogue(address)}: ${said}`, { cause: error });
  });
}

/** The statement may hold a password: neither it nor what quotes it stands in an error. */
async function execute(connection: DuckDBConnection, statement: string): Promise<void> {
  try {
    await connection.run(`CALL postgres_execute('maker', ${quoteText(statement)}, use_transaction => false)`);
  } catch (error) {
    const [, said] = /ERROR:\s*([^\n]+)/.exec(messageOf(error)) ?? [];
    throw new RingneckError(`Postgres refuses ${statement.split(' ').slice(0, 2).join(' ')}: ${said ?? 'no reason was given'}`);
  }
}
