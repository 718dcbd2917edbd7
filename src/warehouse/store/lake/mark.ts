import type { DuckDBConnection } from '@duckdb/node-api';
import { RingneckError, UsageError } from '../../../base/errors.ts';
import { type LakeAddress, showCatalogue } from '../../../base/lake-address.ts';
import { quoteText } from '../../sql.ts';
import { readRows } from '../database.ts';
import { CATALOGUE } from './open-lake.ts';

/** Lies in the place of a lake and says whose files those are. Upkeep leaves it there. */
export const MARK = 'ringneck-lake.csv';

/** A copy of a database, or one that was restored elsewhere, has another one; a standby that takes the place of its server has the same. */
const IDENTITY = `SELECT system_identifier || ' ' || oid AS identity FROM pg_control_system(), pg_database WHERE datname = current_database()`;

export async function writeMark(connection: DuckDBConnection, address: LakeAddress): Promise<void> {
  const values = [showCatalogue(address), (await readIdentity(connection)) ?? ''].map(quoteText);
  await connection.run(`COPY (SELECT ${values[0]} AS lake, ${values[1]} AS identity) TO ${quoteText(address.data + MARK)} (FORMAT csv)`);
}

/**
 * Two catalogues must not have the same files: each removes what it does not know.
 * @throws UsageError where the files are those of another catalogue
 * @throws RingneckError where what lies there is not the place of the lake, as where a folder is not mounted
 */
export async function ensureFilesOurs(connection: DuckDBConnection, address: LakeAddress): Promise<void> {
  const mark = await readMark(connection, address.data + MARK);
  if (!mark) return ensureNoFiles(connection, address);
  const { lake, noted } = mark;
  const identity = await readIdentity(connection);
  // A mark of an earlier version has none.
  if (!noted && identity && lake === showCatalogue(address)) await writeMark(connection, address);
  if (!noted || !identity || noted === identity) return;
  throw new UsageError(
    `the files in ${address.data} are those of the lake ${lake}, and the catalogue ${showCatalogue(address)} is a copy of its catalogue, or has taken its place: ` +
      'a copy needs files of its own, for each removes what it does not know; where the other one is no more: ringneck lake init',
  );
}

/** @throws UsageError where it is damaged */
async function readMark(connection: DuckDBConnection, path: string): Promise<{ lake: string; noted: string | undefined } | undefined> {
  // A name without a wildcard is not looked up in a bucket.
  if (!(await readRows(connection, `FROM glob(${quoteText(`${path}*`)})`)).length) return undefined;
  const read = `FROM read_csv(${quoteText(path)}, header = true, all_varchar = true, delim = ',', quote = '"')`;
  const [[lake, noted] = []] = await readRows(connection, read).catch(error => {
    if (/Invalid Input Error/.test(String(error))) return [];
    throw error;
  });
  if (lake) return { lake: String(lake), noted: noted ? String(noted) : undefined };
  throw new UsageError(
    `${path}, which says whose the files beside it are, is damaged: where they are of this lake, ringneck lake init writes it anew`,
  );
}

/** @throws RingneckError where the catalogue names files, for which there is no place then */
async function ensureNoFiles(connection: DuckDBConnection, address: LakeAddress): Promise<void> {
  const asked = 'SELECT 1 AS found FROM ducklake_data_file WHERE end_snapshot IS NULL LIMIT 1';
  if (!(await readRows(connection, `FROM postgres_query(${quoteText(CATALOGUE)}, ${quoteText(asked)})`)).length) return;
  throw new RingneckError(
    `the files of the lake ${showCatalogue(address)} are not in ${address.data}, for there is no ${MARK}: is the folder not mounted, or the bucket another one? ` +
      'Where they are all there, ringneck lake init writes it anew',
  );
}

/** Undefined where this user may not ask. */
async function readIdentity(connection: DuckDBConnection): Promise<string | undefined> {
  const asked = `FROM postgres_query(${quoteText(CATALOGUE)}, ${quoteText(IDENTITY)})`;
  const [[identity] = []] = await readRows(connection, asked).catch(error => {
    if (/permission denied/.test(String(error))) return [];
    throw error;
  });
  return identity ? String(identity) : undefined;
}
