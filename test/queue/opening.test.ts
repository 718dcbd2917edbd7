import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../src/base/log.ts';
import { isEnvironmentError } from '../../src/queue/environment-errors.ts';
import { openQueues } from '../../src/queue/open.ts';
import type { Queues } from '../../src/queue/queues.ts';

const here = fileURLToPath(new URL('.', import.meta.url));
let folder: string;
let queues: Queues | undefined;

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'ringneck-opening-')), 'queue');
});
afterEach(async () => {
  await queues?.close();
  rmSync(dirname(folder), { recursive: true, force: true });
});

const open = async () => {
  queues = await openQueues({ folder, log: silentLog });
  return queues;
};
/** What was set aside. */
const aside = () => readdirSync(folder).filter(name => name.startsWith('database.broken'));

test('what was set aside is kept', async () => {
  for (const n of [1, 2]) {
    const before = await open();
    await before.add('work', 'n', n);
    await before.close();
    rmSync(join(folder, 'database/PG_VERSION'));
  }
  await (await open()).close();
  await (await open()).close();
  expect(aside()).toHaveLength(2);
});

test('a process that ended while it set the database aside leaves a queue that opens, empty', async () => {
  await (await open()).close();
  // As after the first of two renames.
  renameSync(join(folder, 'database'), join(folder, 'database.broken-2025-06-01T00-00-00.000Z'));
  expect((await (await open()).counts('work')).waiting).toBe(0);
});

test.skipIf(process.platform !== 'linux')('too little memory is an error, and the queue keeps what it holds', async () => {
  const before = await open();
  await before.add('work', 'n', 1);
  await before.close();
  // Node 20 does not run TypeScript. Into a folder of its own: another file's tests may be running what lies in the usual one.
  const compiled = join(here, '../../node_modules/.cache/ringneck-opening');
  execFileSync(join(here, '../../node_modules/.bin/tsc'), ['-p', here, '--noCheck', '--outDir', compiled]);
  // Enough for Node, too little for a WebAssembly memory.
  const line = `ulimit -v 3000000; exec '${process.execPath}' '${join(here, 'opened.mjs')}' '${folder}'`;
  for (const _ of [1, 2]) {
    const said = execFileSync('sh', ['-c', line], { encoding: 'utf8' });
    expect(said).toMatch(
      /^RingneckError the queue in .* cannot be opened: .*memory.*; what it holds is kept: look at the disk, the memory/,
    );
    expect(said).toContain(folder);
  }
  expect(readdirSync(folder)).toEqual(['database']);
  const after = await open();
  expect((await after.counts('work')).waiting).toBe(1);
});

test('a file that may not be read is an error, and the queue keeps what it holds', async () => {
  const before = await open();
  await before.add('work', 'n', 1);
  await before.close();
  const { uid } = statSync(folder);
  const file = join(folder, 'database/global/pg_control');
  const asOther = async (work: () => Promise<unknown>) => {
    // To root everything is open: it becomes somebody else meanwhile, who owns all but this file.
    if (uid !== 0) return work();
    for (const path of ['.', ...readdirSync(folder, { recursive: true })]) chownSync(join(folder, String(path)), 65_534, 65_534);
    chownSync(dirname(folder), 65_534, 65_534);
    chownSync(file, 0, 0);
    process.seteuid!(65_534);
    try {
      return await work();
    } finally {
      process.seteuid!(0);
    }
  };
  chmodSync(file, 0);
  await asOther(() => expect(open()).rejects.toThrow(/cannot be opened: EACCES.*pg_control.*who owns the folder/));
  chmodSync(file, 0o600);
  expect(aside()).toEqual([]);
  expect((await (await open()).counts('work')).waiting).toBe(1);
});

test('a full disk is told from a broken file', () => {
  const full = new Error('ENOSPC: no space left on device, write') as NodeJS.ErrnoException;
  full.code = 'ENOSPC';
  expect(isEnvironmentError(full)).toBe(true);
  expect(isEnvironmentError(Object.assign(new Error('could not extend file'), { code: '53100' }))).toBe(true);
  expect(isEnvironmentError(Object.assign(new Error('could not read block 0'), { code: 'XX001' }))).toBe(false);
  expect(isEnvironmentError(Object.assign(new Error('no such file'), { code: '58P01' }))).toBe(false);
});
