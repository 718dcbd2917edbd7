import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { resources } from '../../../schema/index.ts';
import type { ExportRequest } from '../../../src/app/export/request.ts';
import { type ExportReport, runExport } from '../../../src/app/export/run.ts';
import type { Warehouse } from '../../../src/warehouse/warehouse.ts';
import { pick, randomDocument, randomFrom } from '../../support/random-documents.ts';
import type { Ended } from '../../support/ringneck.ts';
import { runHere } from '../../support/run-here.ts';
import { hashTables } from '../../support/table-hash.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { openWarehouse, store, withDuckDB } from '../../support/warehouse.ts';
import { STRESS } from '../../support/wire.ts';

const T = Date.UTC(2025, 2, 31, 23, 59) / 1000;

/** Measurements one minute apart, around the turn of a month. */
const heartRateRows = Array.from({ length: 5 }, (_, i) => ({
  timestamp: new Date((T + 60 * i) * 1000).toISOString(),
  timestamp_unix: (T + 60 * i) * 1000,
  bpm: 60 + i,
  source: 'rest',
}));

/** Each is the text of a document of daily_stress, `odd-0` and so on, in January 2031. */
export const ODD_TEXTS = [
  '=1+1',
  '+49',
  '-5',
  '@SUM(A1)',
  "'quoted",
  'a,b',
  'he said "no"',
  'two\r\nlines',
  'naïve 眠り 😀',
  '',
  ' spaced ',
  '\ttab',
  '4443332221111222',
  '012345',
  '123456789012345',
  '0',
  '12e34',
  '2.10',
  ' 1234567890123456 ',
];

/** What is exported: every table, of two people. */
async function fill(warehouse: Warehouse): Promise<void> {
  const random = randomFrom(11);
  for (const userId of ['ann', '-zoë']) {
    for (const resource of resources) {
      const documents = Array.from({ length: 25 }, (_, i) => ({
        ...randomDocument(resource, random, `${resource.name}-${i}`),
        ...(resource.dated ? { day: pick(random, ['2024-12-31', '2025-03-30', '2025-03-31', '2025-04-01']) } : {}),
      }));
      await warehouse.storeDocuments({ userId, resource, requestedAt: warehouse.clock.lease(), documents });
    }
    await warehouse.storeHeartRate({
      userId,
      from: T * 1_000_000,
      to: (T + 600) * 1_000_000,
      requestedAt: warehouse.clock.lease(),
      rows: heartRateRows,
    });
  }
  await store(
    warehouse,
    'daily_stress',
    ODD_TEXTS.map((text, i) => ({ ...STRESS, id: `odd-${i}`, day: `2031-01-${10 + i}`, note: text, day_summary: text })),
  );
}

export interface Exporting {
  folder: string;
  /** The warehouse. */
  file: string;
  env: Record<string, string>;
  /** An export by the command. */
  exported(...args: string[]): Promise<Ended>;
  /** An export in this process. */
  exportHere(out: string, request?: Partial<ExportRequest>, notes?: string[]): Promise<ExportReport>;
}

/** A data folder with something in every table, in a folder for what is exported. */
export async function openExporting(): Promise<Exporting> {
  const folder = tempFolder();
  const data = join(folder, 'data');
  const file = join(data, 'warehouse.duckdb');
  const warehouse = await openWarehouse(file);
  await fill(warehouse);
  await warehouse.close();
  const env = { RINGNECK_DATA: data };
  return {
    folder,
    file,
    env,
    exported: (...args) => runHere(['export', ...args], { env }),
    exportHere: (out, request = {}, notes = []) =>
      runExport({
        request: { out, format: 'parquet', tables: null, users: null, from: null, to: null, ...request },
        from: { path: file, kind: 'warehouse', at: '2025-06-01T00:00:00Z' },
        onProgress: () => {},
        onNote: text => notes.push(text),
        signal: new AbortController().signal,
      }),
  };
}

export const read = (path: string, sql: string) =>
  withDuckDB(path, async connection => (await connection.runAndReadAll(sql)).getRows() as unknown[][]);

/** Every file below a folder but the manifest, with its hash. */
export function filesIn(out: string): Record<string, string> {
  const paths = readdirSync(out, { recursive: true, encoding: 'utf8' }).filter(path => statSync(join(out, path)).isFile());
  const hash = (path: string) =>
    createHash('sha256')
      .update(readFileSync(join(out, path)))
      .digest('hex');
  return Object.fromEntries(
    paths
      .filter(path => path !== 'export.json')
      .sort()
      .map(path => [path, hash(path)]),
  );
}

export const manifestOf = (out: string) => JSON.parse(readFileSync(join(out, 'export.json'), 'utf8'));

/** What a folder of Parquet files holds, read with DuckDB alone, as hashes of its tables. */
export function hashParquet(out: string): Promise<Record<string, string>> {
  return withDuckDB(':memory:', async connection => {
    for (const name of readdirSync(out)) {
      if (statSync(join(out, name)).isDirectory()) {
        await connection.run(`CREATE TABLE "${name}" AS SELECT * FROM read_parquet('${join(out, name)}/*.parquet')`);
      }
    }
    return hashTables(async sql => (await connection.runAndReadAll(sql)).getRows());
  });
}

/** Every table of a warehouse with its rows. Not the views: over odd values they may fail. */
export async function listTables(file: string): Promise<[name: string, rows: number][]> {
  const names = (await read(
    file,
    `SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' AND NOT internal ORDER BY table_name`,
  )) as [string][];
  const tables: [string, number][] = [];
  for (const [name] of names) tables.push([name, Number((await read(file, `SELECT count(*) FROM "${name}"`))[0]![0])]);
  return tables;
}

/** The tables of a warehouse, as `hashParquet` has them. */
export async function hashWarehouse(file: string): Promise<Record<string, string>> {
  const tables = await listTables(file);
  return withDuckDB(':memory:', async connection => {
    await connection.run(`ATTACH '${file}' AS w (READ_ONLY)`);
    for (const [name] of tables) await connection.run(`CREATE TABLE "${name}" AS FROM w.main."${name}"`);
    return hashTables(async sql => (await connection.runAndReadAll(sql)).getRows());
  });
}
