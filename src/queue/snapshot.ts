import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runMigrations } from 'bullmq';
import { writeFileAtomically } from '../base/files.ts';
import { send } from './session.ts';
import { startPostgres } from './start-postgres.ts';

// In the source tree it lies where the build has put it.
const folder = fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? '../../dist/src/queue/' : './', import.meta.url));

/** The migrated, empty database as a compressed tar archive. Its name holds what it was made with, so that no other version takes it. */
export async function readSnapshot(): Promise<Buffer> {
  const file = snapshotFile();
  if (existsSync(file)) return readFileSync(file);
  const snapshot = await makeSnapshot();
  try {
    storeSnapshot(file, snapshot);
  } catch {
    // A package that its user may not write to works without, only slower.
  }
  return snapshot;
}

/** For `npm run prepare`: keeps a snapshot beside the compiled program, unless it is there, and no other. */
export async function storeSnapshotOnce(): Promise<void> {
  const file = snapshotFile();
  for (const name of readdirSync(folder)) {
    if (name.endsWith('.tar.gz') && join(folder, name) !== file) rmSync(join(folder, name));
  }
  if (!existsSync(file)) storeSnapshot(file, await makeSnapshot());
}

/** Takes 4 seconds and 700 MB of memory. A queue that starts from the snapshot takes half a second and 200 MB. */
async function makeSnapshot(): Promise<Buffer> {
  const database = await startPostgres({ initDbStartParams: ['--wal-segsize=1'] });
  try {
    await runMigrations({ query: (text, parameters) => send(database, text, parameters) });
    // What a new database would be copied from is two thirds of all files, and nobody makes one.
    for (const template of ['template0', 'template1']) {
      await send(database, `UPDATE pg_database SET datistemplate = false WHERE datname = '${template}'`);
      await send(database, `DROP DATABASE ${template}`);
    }
    await send(database, 'CHECKPOINT');
    return Buffer.from(await (await database.dumpDataDir('gzip')).arrayBuffer());
  } finally {
    await database.close();
  }
}

function storeSnapshot(file: string, snapshot: Buffer): void {
  mkdirSync(folder, { recursive: true });
  // Readable for everyone, as the rest of a package is.
  writeFileAtomically(file, snapshot, 0o644);
}

function snapshotFile(): string {
  return join(folder, `queue-pglite-${versionOf('@electric-sql/pglite')}-bullmq-${versionOf('bullmq')}.tar.gz`);
}

function versionOf(name: string): string {
  let at = dirname(createRequire(import.meta.url).resolve(name));
  while (!existsSync(join(at, 'package.json'))) at = dirname(at);
  return String(JSON.parse(readFileSync(join(at, 'package.json'), 'utf8')).version);
}
