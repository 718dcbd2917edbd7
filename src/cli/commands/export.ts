import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { getSource } from '../../app/find-source.ts';
import { UsageError } from '../../base/errors.ts';
import { interruptible } from '../../base/interrupt.ts';
import { EXPORT_FORMATS, type ExportFormat } from '../../warehouse/readers/export/formats.ts';
import { collect, parseDay, withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { note, noteStale } from '../terminal/note.ts';
import { formatBytes, formatCount, printJson, printLine } from '../terminal/print.ts';

interface Options {
  format: ExportFormat;
  out: string;
  table?: string[];
  user?: string[];
  from?: string;
  to?: string;
  json?: true;
}

export function addExport(program: Command): void {
  withExample(
    program
      .command('export')
      .description('export the warehouse to files that other programs read; run it again to bring them up to date')
      .addOption(new Option('--format <format>', 'what the files are').choices(EXPORT_FORMATS).default('parquet'))
      .requiredOption('--out <folder>', 'output folder: new, empty, or of the same export')
      .option('--table <name>', 'only this table or view (may be repeated); else all tables of the data', collect)
      .option('--user <name>', 'only this account (may be repeated)', collect)
      .option('--from <day>', 'first day: of heart_rate by UTC; of weekly each week that has a day in the range', parseDay)
      .option('--to <day>', 'last day', parseDay)
      .option('--json', 'print {out, format, files, rows, bytes, skipped, removed}'),
    'ringneck export --out exported',
    'ringneck export --format csv --table daily --table nights --user ada --from 2025-01-01 --out ada-2025',
  ).action(async (options: Options) => {
    const { out, format, from = null, to = null, json } = options;
    if (from && to && from > to) throw new UsageError(`--from ${from} is after --to ${to}`);
    const sorted = (names: string[] | undefined) => (names ? [...new Set(names)].sort() : null);
    const request = { out: resolve(out), format, tables: sorted(options.table), users: sorted(options.user), from, to };
    const session = await openSession();
    const [{ showExport }, { runExport }] = await Promise.all([
      import('../terminal/export-progress.ts'),
      import('../../app/export/run.ts'),
    ]);
    const progress = showExport();
    const notes: string[] = [];
    const report = await interruptible(async signal => {
      const source = await getSource(session.settings, signal);
      noteStale(source);
      try {
        return await runExport({ request, from: source, onProgress: progress.update, onNote: text => notes.push(text), signal });
      } finally {
        progress.end();
      }
    });
    for (const text of notes) note(text);
    if (!report.rows) note('no rows: the files hold only the names of the columns');
    if (json) printJson(report);
    else {
      const { files, rows, bytes, skipped, removed } = report;
      const same = skipped ? `, ${formatCount(skipped)} unchanged` : '';
      const gone = removed ? `, ${formatCount(removed)} removed` : '';
      printLine(
        `${report.out}: ${formatCount(rows)} rows in ${formatCount(files)} ${files === 1 ? 'file' : 'files'}, ${formatBytes(bytes)}${same}${gone}`,
      );
    }
  });
}
