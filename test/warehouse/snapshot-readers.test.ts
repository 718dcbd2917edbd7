import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { hasPythonDuckDB } from '../support/python.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, store } from '../support/warehouse.ts';
import { isWhole } from '../support/whole.ts';
import { ACTIVITY } from '../support/wire.ts';

const folder = tempFolder();
const DOCUMENTS = 12;
const ITEMS = 400;
const ROUNDS = isWhole ? 20 : 4;

/** Of one moment: as many documents as were ever stored, each with all its samples and the same number, everywhere. */
const SQL = `SELECT min(steps), max(steps), count(*), sum(met_count), (SELECT count(*) FROM daily_activity_met),
  (SELECT min(value) FROM daily_activity_met), (SELECT max(value) FROM daily_activity_met) FROM daily_activity`;

function startReader(command: string, script: string, path: string) {
  const child = spawn(command, [fileURLToPath(new URL(`../support/${script}`, import.meta.url)), path, SQL], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const output = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return {
    async end() {
      child.stdin.end();
      const [stdout, stderr, [code]] = await output;
      expect([stderr, code]).toEqual(['', 0]);
      return JSON.parse(stdout) as number[][];
    },
  };
}

const readers = [
  { what: 'another Node process', command: process.execPath, script: 'read-loop.mjs', isThere: true },
  { what: 'Python, with its own DuckDB', command: 'python3', script: 'read-loop.py', isThere: hasPythonDuckDB },
];

for (const { what, command, script, isThere } of readers) {
  test.skipIf(!isThere)(`${what} opens, asks and closes again and again under load: never an error, always one state`, async () => {
    const warehouse = await openWarehouse(newPath(folder));
    const path = join(dirname(warehouse.path), 'snapshot.duckdb');
    // One answer brings all documents with its number: they are stored together.
    const write = (n: number) =>
      store(
        warehouse,
        'daily_activity',
        Array.from({ length: DOCUMENTS }, (_, i) => ({
          ...ACTIVITY,
          id: `a-${i}`,
          day: `2025-03-${10 + i}`,
          steps: n,
          met: { ...ACTIVITY.met, items: Array(ITEMS).fill(n) },
        })),
      );
    await write(0);
    await warehouse.snapshot(path, 0o600);
    const reader = startReader(command, script, path);
    for (let n = 1; n <= ROUNDS; n++) {
      await write(n);
      // All has changed: by itself it would be made anew each time.
      await (n % 3 ? warehouse.refreshSnapshot(path, 0o600).catch(() => warehouse.snapshot(path, 0o600)) : warehouse.snapshot(path, 0o600));
    }
    const seen = await reader.end();
    await warehouse.close();
    for (const row of seen) expect(row).toEqual([row[0], row[0], 12, 4800, 4800, row[0], row[0]]);
    const numbers = seen.map(([number]) => number!);
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    expect(numbers.at(-1)).toBeLessThanOrEqual(ROUNDS);
    // It looked while they were published.
    expect(new Set(numbers).size).toBeGreaterThan(1);
  });
}
