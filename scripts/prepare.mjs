// Runs after tsc: what the compiled program needs besides JavaScript.
import { cpSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));

// Every script that lies there is run or asked: one of an earlier build must not be.
for (const folder of ['views', 'queries']) rmSync(join(root, 'dist/schema', folder), { recursive: true, force: true });
for (const path of readdirSync(join(root, 'schema'), { recursive: true })) {
  if (/\.sql$/.test(path)) cpSync(join(root, 'schema', path), join(root, 'dist/schema', path));
}

// One of an earlier build stays, when it was made with these versions.
const { storeSnapshotOnce } = await import(new URL('../dist/src/queue/snapshot.js', import.meta.url));
await storeSnapshotOnce();
