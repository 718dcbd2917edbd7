import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { resources } from '../../../schema/index.ts';
import { connectControl } from '../../app/control/connect-control.ts';
import { messageOf, TryLaterError, UsageError } from '../../base/errors.ts';
import { ensureFolder } from '../../base/files.ts';
import { Secrets } from '../../base/secrets/secrets.ts';
import { WAREHOUSE, warehouseIn } from '../../base/warehouse-file.ts';
import { createPerson } from '../../simulator/users/person.ts';

/** Holds the address of the demo's service, once it has one: tokens for any other are somebody's own. */
const MARK = '.ringneck-demo';

/** Whom the demo's service has. */
export const PEOPLE = { count: 3, seed: 7 };

/** What a demo makes, what of it a kill leaves half made, and the history of the prompt that it names at its end. */
const OURS = [
  /^(?:\.ringneck-demo|inbox|queue|service|control\.sock|\.control-\w{6})$/,
  /^(?:accounts\.secret|secret\.key|sql_history)(?:\.\d+\.[0-9a-f]+\.new)?$/,
];
/** What follows the name of a database in those of the files that are made beside it. */
const BESIDE_DATABASE = /^(?:(?:\.new)?(?:\.wal)?|(?:\.\d+)?\.tmp|\.handover(?:\.\d+\.[0-9a-f]+\.new)?)$/;

const isOurs = (name: string) =>
  OURS.some(pattern => pattern.test(name)) ||
  [WAREHOUSE, 'snapshot.duckdb'].some(database => name.startsWith(database) && BESIDE_DATABASE.test(name.slice(database.length)));

/** Starts afresh, but removes nothing that a demo did not make. */
export async function clearFolder(folder: string): Promise<void> {
  if (existsSync(folder)) {
    if (!existsSync(join(folder, MARK))) throw new UsageError(`${folder} was not made by a demo: move it away first`);
    const control = await connectControl(folder);
    if (control) throw new TryLaterError(`a demo is running (PID ${control.pid}): end it first`);
    await refuseOthers(folder);
    rmSync(folder, { recursive: true });
  }
  ensureFolder(folder);
  writeFileSync(join(folder, MARK), '');
}

/** Before the first account is added: only tokens for this address are the demo's own. */
export function noteService(folder: string, address: string): void {
  writeFileSync(join(folder, MARK), address);
}

async function refuseOthers(folder: string): Promise<void> {
  const other = await findOther(folder).catch((error: unknown) => {
    if (error instanceof TryLaterError) throw error;
    throw new UsageError(`what ${folder} holds cannot be read (${messageOf(error)}): move it away first`, { cause: error });
  });
  if (other !== undefined) throw new UsageError(`${folder} holds ${other}, which no demo made: move it away first`);
}

async function findOther(folder: string): Promise<string | undefined> {
  const entry = readdirSync(folder).find(name => !isOurs(name));
  if (entry !== undefined) return entry;
  // Made with the first account: without it a demo was killed before it had made the warehouse.
  if (!existsSync(join(folder, 'accounts.secret'))) return undefined;
  const warehouse = warehouseIn(folder);
  return (await findPerson(warehouse)) ?? findToken(folder) ?? (await findRelation(warehouse));
}

/** Somebody whom the demo's service does not have, or who was removed: the rows that are left may be of another service's person of that name. */
async function findPerson(warehouse: string): Promise<string | undefined> {
  const people = Array.from({ length: PEOPLE.count }, (_, index) => createPerson(PEOPLE.seed, index).name);
  const [{ openReader }, { findOtherAccount }, { findOtherParticipant }] = await Promise.all([
    import('../../warehouse/readers/open-reader.ts'),
    import('../../ledger/other-account.ts'),
    import('../../warehouse/participants.ts'),
  ]);
  const reader = await openReader({ path: warehouse, memoryLimit: '256MB' });
  try {
    return (await findOtherAccount(reader, people)) ?? (await findOtherParticipant(reader, people));
  } finally {
    reader.close();
  }
}

function findToken(folder: string): string | undefined {
  const secrets = new Secrets({ folder, address: readFileSync(join(folder, MARK), 'utf8') });
  const name = secrets.names().find(account => secrets.whyMissing(account) !== undefined);
  return name === undefined ? undefined : `a token of ${name} for another service`;
}

/** A table, view or macro of somebody's own. */
async function findRelation(warehouse: string): Promise<string | undefined> {
  const { declareCatalogue, readCatalogue } = await import('../../warehouse/readers/catalogue.ts');
  const ours = new Set((await declareCatalogue(resources)).entries.map(({ name }) => name));
  const own = (await readCatalogue(warehouse, resources)).entries.find(({ name }) => !ours.has(name));
  return own && `the ${own.kind} ${own.name}`;
}
