import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type Command, Option } from 'commander';
import { findDoor } from '../control/find-door.ts';
import { UsageError } from '../errors.ts';
import { openReader } from '../warehouse/query.ts';
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
    const reader = await openReader(path);
    try {
      await interruptible(async signal => {
        signal.addEventListener('abort', () => reader.interrupt());
        await writeResult(await reader.query(sql), options.format, process.stdout);
      });
    } finally {
      await reader.close();
    }
  });
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
  if (stale) remark(`the warehouse is being written: this is its state of ${at}`);
  return path;
}
