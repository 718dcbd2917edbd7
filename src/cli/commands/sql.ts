import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { getSource, hasOwnerSince, type Source } from '../../app/find-source.ts';
import { FORMATS, type Format } from '../../app/query/formats.ts';
import type { Page } from '../../app/query/frames.ts';
import { oneLine } from '../../app/query/one-line.ts';
import type { Limits } from '../../app/query/query-process.ts';
import { RingneckError, UsageError } from '../../base/errors.ts';
import { interruptible } from '../../base/interrupt.ts';
import { printable, printableLines } from '../../base/printable.ts';
import { wholeNumber, withExample } from '../options.ts';
import { openSession, type Session } from '../session.ts';
import { note, noteStale } from '../terminal/note.ts';
import { printLines } from '../terminal/print.ts';

interface Options {
  format?: Format;
  memory: Limits['memory'];
  timeout: number;
}

const MORE = `
What there is to ask: ringneck tables, ringneck describe NAME, and the questions of docs/cookbook.md.
The query runs read-only in a process of its own, which can reach no file and no network; of several statements all are run and the
last one's result is written. While \`ringneck up\` runs, its snapshot is asked. Any other tool reads the snapshot as well, read-only:
  duckdb -readonly data/snapshot.duckdb`;

export function addSql(program: Command): void {
  withExample(
    program
      .command('sql [query]')
      .description('ask the warehouse in SQL, read-only: at a prompt on a terminal, else the query may come from standard input')
      .addOption(
        new Option(
          '--format <format>',
          'how the result is written (csv: texts as they are, also those that a spreadsheet takes for a formula; `ringneck export` marks them); without it a table, whole, or on a terminal in a box what fits',
        ).choices(FORMATS),
      )
      .addOption(
        new Option('--memory <size>', 'what a query may take').argParser(parseMemory).default({ text: '1GB', bytes: 2 ** 30 }, '1GB'),
      )
      .option('--timeout <seconds>', 'how long a query may take, from its start to its last row', wholeNumber(1, 86_400), 300)
      // A query that begins with a remark looks like an option.
      .allowUnknownOption()
      .allowExcessArguments()
      .addHelpText('after', MORE),
    'ringneck sql',
    `ringneck sql "SELECT user_id, round(avg(total_sleep_duration) / 3600, 1) AS hours FROM sleep WHERE type = 'long_sleep' GROUP BY ALL"`,
    `ringneck sql "SELECT day, stress_high FROM daily_stress WHERE user_id = 'ada' ORDER BY stress_high DESC LIMIT 10" --format json`,
    'ringneck sql --format csv < question.sql > answer.csv',
  ).action(async (query: string | undefined, { format, memory, timeout }: Options, { args }: Command) => {
    const option = args.find(arg => /^--?\w\S*$/.test(arg));
    if (option !== undefined) throw new UsageError(`unknown option '${option}': ringneck sql --help shows those there are`);
    if (args.length > 1) throw new UsageError('a query is one argument: put it in quotes');
    const session = await openSession();
    const limits = {
      memory,
      seconds: timeout,
      more: { seconds: '--timeout allows more', memory: `--memory allows more than ${memory.text}` },
    };
    if (query === undefined && format === undefined && process.stdin.isTTY && process.stdout.isTTY) {
      const { runPrompt } = await import('../sql/repl.ts');
      return runPrompt(session.settings, limits);
    }
    const sql = query ?? (await readQuery());
    if (!sql.trim()) throw new UsageError('no query: give one as an argument or on standard input');
    await interruptible(signal => writeAnswer(session, sql, format, limits, signal));
  });
}

async function writeAnswer(session: Session, sql: string, format: Format | undefined, limits: Limits, signal: AbortSignal): Promise<void> {
  const { QueryProcess } = await import('../../app/query/query-process.ts');
  // It starts while the owner is asked for its snapshot.
  const query = new QueryProcess(limits);
  let source: Source | undefined;
  try {
    source = await getSource(session.settings, signal);
    const { path } = source;
    noteStale(source);
    const page = format === undefined && process.stdout.isTTY ? await import('../sql/page.ts') : undefined;
    const as = page ? { pageOf: page.ROWS_SHOWN } : { format: format ?? 'table' };
    let last: Page | undefined;
    const decoder = new TextDecoder();
    // Into a pipe or a file go the values as they are.
    const shown = (text: Uint8Array) => (process.stdout.isTTY ? printableLines(decoder.decode(text, { stream: true })) : text);
    await query.ask(
      { path, sql, as },
      async frame => {
        if (frame.kind === 'page') last = frame.page;
        else if (frame.kind === 'text' && !process.stdout.write(shown(frame.text))) await once(process.stdout, 'drain');
      },
      signal,
    );
    if (page && last) printLines(page.formatPage(last, { more: '--format table' }));
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (source && (await hasOwnerSince(error, source, session.settings))) return writeAnswer(session, sql, format, limits, signal);
    if (!(error instanceof RingneckError)) throw error;
    throw new RingneckError(printable(oneLine(error.message)), error.exitCode, { cause: error });
  } finally {
    await query.end();
  }
}

const UNITS: Record<string, number> = { kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40 };
const LEAST_BYTES = 32 * 2 ** 20;

function parseMemory(given: string): Limits['memory'] {
  const [, size, unit] = /^(\d+(?:\.\d+)?)\s*([KMGT]i?B)$/i.exec(given.trim()) ?? [];
  const bytes = Number(size) * (UNITS[unit?.toLowerCase() ?? ''] ?? 0);
  if (!(bytes >= LEAST_BYTES)) throw new InvalidArgumentError('expected a size of at least 32MiB, as 500MB or 4GB');
  return { text: given.trim(), bytes };
}

function readQuery(): Promise<string> {
  if (process.stdin.isTTY) note('Type the query, then Ctrl-D:');
  return text(process.stdin);
}
