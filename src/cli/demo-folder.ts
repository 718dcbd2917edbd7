import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findDoor } from '../control/find-door.ts';
import { messageOf, TryLaterError, UsageError } from '../errors.ts';
import { ensureFolder } from '../files.ts';
import { createPerson } from '../service/people/person.ts';
import { quoteText } from '../warehouse/tables.ts';

const MARK = '.ringneck-demo';

/** Whom the demo's service has. */
export const PEOPLE = { count: 3, seed: 7 };

/** Starts afresh, but removes nothing that a demo did not make. */
export async function clearFolder(folder: string): Promise<void> {
  if (existsSync(folder)) {
    if (!existsSync(join(folder, MARK))) throw new UsageError(`${folder} was not made by a demo: move it away first`);
    const door = await findDoor(folder);
    if (door) throw new TryLaterError(`a demo is running (PID ${door.pid}): end it first`);
    await refuseOthers(folder);
    rmSync(folder, { recursive: true });
  }
  ensureFolder(folder);
  writeFileSync(join(folder, MARK), '');
}

/** Throws where anybody else was ever added, also one whose token is gone and whose rows are there. */
async function refuseOthers(folder: string): Promise<void> {
  // Made with the first account: without it a demo was killed before it had made the warehouse.
  if (!existsSync(join(folder, 'accounts.secret'))) return;
  const names = await findOthers(join(folder, 'warehouse.duckdb')).catch((error: unknown) => {
    if (error instanceof TryLaterError) throw error;
    throw new UsageError(`whose accounts ${folder} holds cannot be read (${messageOf(error)}): move it away first`, { cause: error });
  });
  if (names !== null) throw new UsageError(`${folder} holds ${names}, whom no demo made: move it away first`);
}

async function findOthers(warehouse: string): Promise<string | null> {
  const people = Array.from({ length: PEOPLE.count }, (_, index) => quoteText(createPerson(PEOPLE.seed, index).name));
  const { openReader } = await import('../warehouse/query.ts');
  const reader = await openReader(warehouse);
  try {
    const { columns, chunks } = await reader.query(
      `SELECT string_agg(user_id, ', ' ORDER BY user_id) FROM sync.accounts WHERE user_id NOT IN (${people.join(', ')})`,
    );
    for await (const [row] of chunks) return columns[0]!.text(row![0]!);
    return null;
  } finally {
    reader.close();
  }
}
