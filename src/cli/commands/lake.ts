import { resolve } from 'node:path';
import type { Command } from 'commander';
import { call } from '../../app/call.ts';
import { placeOf } from '../../app/lake/place.ts';
import { UsageError } from '../../base/errors.ts';
import { interruptible } from '../../base/interrupt.ts';
import type { LakePlace } from '../../warehouse/lake.ts';
import { tellReaders } from '../../warehouse/lake-readers.ts';
import { withExample } from '../options.ts';
import { openSession, type Session } from '../session.ts';
import { formatCount, printJson, printLine, printLines } from '../terminal/print.ts';

const ABOUT = `
A lake is the warehouse as Parquet files in a bucket or a folder, with its catalogue in Postgres: see docs/lake.md, which also says when a
file is better. RINGNECK_WAREHOUSE names it.`;

export function addLake(program: Command): void {
  const lake = program
    .command('lake')
    .description('keeps the warehouse in a lake: Parquet in a bucket, its catalogue in Postgres')
    .addHelpText('after', ABOUT);
  withExample(
    lake
      .command('init')
      .description('make the lake of RINGNECK_WAREHOUSE, with a role that reads alone, and print what readers type; may be repeated')
      .option(
        '--as <user>',
        'a user of Postgres who may make databases and roles, with a password as psql finds it (PGPASSWORD, ~/.pgpass)',
      )
      .option('--json', 'print {isOld, reader, readerPassword}'),
    'ringneck lake init --as postgres',
  ).action(init);
  withExample(
    lake
      .command('import')
      .description('move the warehouse of the data folder from its file into the lake, which is empty, and compare both')
      .option('--json', 'print {file, rows}'),
    'ringneck lake import',
  ).action(importFile);
  withExample(
    lake.command('export <file>').description('write all that is in the lake into a warehouse’s file').option('--json', 'print {file}'),
    'ringneck lake export /mnt/disk/ring.duckdb',
  ).action(exportFile);
}

function placeOfSession({ settings }: Session): LakePlace {
  const place = placeOf(settings);
  if (!place)
    throw new UsageError('RINGNECK_WAREHOUSE names no lake: set it to ducklake:postgres://user@host/catalogue?data=s3://bucket/prefix');
  return place;
}

async function init({ as, json }: { as?: string; json?: true }): Promise<void> {
  const place = placeOfSession(await openSession());
  const { initLake } = await import('../../warehouse/lake.ts');
  const made = await initLake(place, as);
  if (json) return printJson(made);
  printLine(made.isOld ? 'the lake was there already' : 'the lake is made');
  printLines(tellReaders(place, made));
}

async function importFile({ json }: { json?: true }): Promise<void> {
  const session = await openSession();
  placeOfSession(session);
  const { importIntoLake } = await import('../../app/lake/import.ts');
  const report = await importIntoLake(session);
  if (json) return printJson(report);
  const rows = Object.values(report.rows).reduce((sum, count) => sum + count, 0);
  printLine(`${formatCount(rows)} rows are in the lake; the file is ${report.file}: remove it when all is well`);
}

async function exportFile(file: string, { json }: { json?: true }): Promise<void> {
  const session = await openSession();
  placeOfSession(session);
  const written = await interruptible(signal => call(session, 'lakeExport', { file: resolve(file) }, { signal }));
  if (json) printJson(written);
  else printLine(written.file);
}
