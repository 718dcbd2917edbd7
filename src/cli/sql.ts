import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type Command, Option } from 'commander';
import { findDoor } from '../control/find-door.ts';
import { RingneckError, UsageError } from '../errors.ts';
import { interruptible } from './interrupt.ts';
import type { OwnerOperations } from './operations.ts';
import { withExample } from './options.ts';
import { remark } from './print.ts';
import { FORMATS, type Format, writeResult } from './result.ts';
import { openSession, type Session } from './session.ts';

export function addSql(program: Command): void {
  withExample(
    program
      .command('sql [query]')
      .description('ask the warehouse in SQL, read-only; the query may come from standard input')
      .addOption(new Option('--format <format>', 'how the result is written').choices(FORMATS).default('table')),
    `ringneck sql "SELECT user_id, round(avg(total_sleep_duration) / 3600, 1) AS hours FROM sleep WHERE type = 'long_sleep' GROUP BY ALL"`,
    'ringneck sql --format csv < question.sql > answer.csv',
  ).action(async (query: string | undefined, options: { format: Format }) => {
    const session = openSession();
    const sql = query ?? (await readQuery());
    if (!sql.trim()) throw new UsageError('no query: give one as an argument or on standard input');
    const path = await findSource(session);
    const { openReader } = await import('../warehouse/query.ts');
    const reader = await openReader(path);
    try {
      await interruptible(async signal => {
        signal.addEventListener('abort', () => reader.interrupt());
        try {
          await writeResult(await reader.query(sql), options.format, process.stdout);
        } catch (error) {
          if (signal.aborted) throw signal.reason;
          throw error instanceof RingneckError ? new RingneckError(oneLine(error.message), error.exitCode, { cause: error }) : error;
        }
      });
    } finally {
      await reader.close();
    }
  });
}

/** What DuckDB says in several lines, the place among them shown by a caret, as one. */
export function oneLine(message: string): string {
  const lines = message.split('\n');
  const at = lines.findIndex(line => /^LINE \d+: /.test(line));
  const caret = lines[at + 1]?.indexOf('^') ?? -1;
  if (at < 0 || caret < 0) return lines.join(' ');
  const [, number] = /^LINE (\d+): /.exec(lines[at]!)!;
  const place = lines[at]!.slice(caret, caret + 40).trim();
  const rest = [...lines.slice(0, at), ...lines.slice(at + 2)].join(' ').trim();
  return `${rest} (line ${number}, ${place ? `at ${JSON.stringify(place)}` : 'at its end'})`;
}

function readQuery(): Promise<string> {
  if (process.stdin.isTTY) remark('Type the query, then Ctrl-D:');
  return text(process.stdin);
}

/** The warehouse itself when nobody owns it, else the owner's snapshot: a reader never works in the writer's instance. */
async function findSource({ settings }: Session): Promise<string> {
  const door = await findDoor<OwnerOperations>(settings.data);
  if (!door) return join(settings.data, 'warehouse.duckdb');
  const { path, at, stale } = await door.call('freshSnapshot', {});
  if (stale) remark(`this is the snapshot of ${at}: the warehouse has changed since, and copying it takes a while (ringneck snapshot)`);
  return path;
}
