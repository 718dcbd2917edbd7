import { existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { getSource } from '../../app/find-source.ts';
import { environment } from '../../base/config.ts';
import { didYouMean } from '../../base/did-you-mean.ts';
import { messageOf, RingneckError, UsageError } from '../../base/errors.ts';
import { writeFileAtomically } from '../../base/files.ts';
import { interruptible } from '../../base/interrupt.ts';
import { isMetric, METRICS, type Metric } from '../../console/page/parts/metrics.ts';
import { parseAccountName } from '../../ledger/accounts.ts';
import { withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { note, noteStale } from '../terminal/note.ts';
import { printLine, printLines } from '../terminal/print.ts';

interface Options {
  month: string;
  metrics?: Metric[];
  out?: string;
  force?: true;
  pdf?: true;
}

/** As many as one side of paper holds. */
const MOST = 6;

const MORE = `
The page is one side of A4: a sentence, the nights, trends of six metrics with what is usual, what is missing and why, how it was
measured. It has no script and asks nothing of anybody; only you can read the file. Metrics: ${Object.keys(METRICS).join(', ')}.
--pdf uses the first Chromium, Chrome or Edge that there is, or the one that RINGNECK_CHROMIUM names.`;

export function addReport(program: Command): void {
  withExample(
    program
      .command('report <name>')
      .description('write a month of a person as one page, to keep or to give to a doctor')
      .requiredOption('--month <month>', 'the month, as 2025-11; one that is not over is shown so far', parseMonth)
      .option('--metrics <names>', 'up to six, with commas between, to draw and list instead of the usual ones', parseMetrics)
      .option('--out <file>', 'where to write it (report-NAME-MONTH.html, or .pdf, here); - for standard output, as HTML')
      .option('--force', 'replace a file that is there already')
      .option('--pdf', 'as PDF, by a Chromium of this machine')
      .addHelpText('after', MORE),
    'ringneck report ada --month 2025-11',
    'ringneck report ada --month 2025-11 --pdf --out ada.pdf',
  ).action(writeReport);
}

async function writeReport(id: string, { month, metrics, out, force, pdf }: Options): Promise<void> {
  parseAccountName(id);
  const file = out === '-' ? undefined : resolve(out ?? `report-${id}-${month}.${pdf ? 'pdf' : 'html'}`);
  if (file === undefined && pdf) throw new UsageError('--pdf is written to a file: name one by --out, or leave it out');
  if (file !== undefined) ensureFree(file, force ?? false);
  const { settings, log } = await openSession();
  const [{ makeReport, USUAL_METRICS }, { printPdf }] = await Promise.all([
    import('../../console/server/report.ts'),
    import('../../console/server/print-pdf.ts'),
  ]);
  await interruptible(async signal => {
    const source = await getSource(settings, signal);
    noteStale(source);
    const request = { id, month, metrics: metrics ?? USUAL_METRICS };
    const { html, isEmpty } = await makeReport(request, source, { settings, log, now: Date.now }, signal);
    if (isEmpty) note(`nothing is stored of ${id} for ${month}: the page says why`);
    if (file === undefined) return printLines(html.trimEnd());
    const content = pdf ? await printPdf(html, { browser: settings.chromium, env: withoutOurs(environment), signal }) : html;
    try {
      writeFileAtomically(file, content);
    } catch (error) {
      throw new RingneckError(`cannot write ${file}: ${messageOf(error)}`, 1, { cause: error });
    }
    printLine(file);
  });
}

/** @throws UsageError before anything is asked */
function ensureFree(file: string, force: boolean): void {
  const folder = dirname(file);
  if (!existsSync(folder)) throw new UsageError(`there is no folder ${folder}: name a file in one that exists`);
  const there = statSync(file, { throwIfNoEntry: false });
  if (!there) return;
  if (!there.isFile()) throw new UsageError(`${file} is no file that could be replaced: name another by --out`);
  if (!force) throw new UsageError(`${file} is there already: name another by --out, or replace it with --force`);
}

/** A browser needs no secrets of ours. */
const withoutOurs = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('RINGNECK_')));

function parseMonth(text: string): string {
  if (!/^(19[7-9]|2\d\d)\d-(0[1-9]|1[0-2])$/.test(text)) throw new InvalidArgumentError('expected a month, YYYY-MM');
  return text;
}

function parseMetrics(text: string): Metric[] {
  const names = [...new Set(text.split(',').map(name => name.trim()))];
  const strange = names.find(name => !isMetric(name));
  if (strange !== undefined) {
    const nearest = didYouMean(strange, Object.keys(METRICS));
    throw new InvalidArgumentError(`${JSON.stringify(strange)} is no metric${nearest ? `: did you mean ${nearest}?` : ''}`);
  }
  if (names.length > MOST) throw new InvalidArgumentError(`expected at most ${MOST} metrics`);
  return names.filter(isMetric);
}
