import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startFetching } from '../../../jobs/process-event.ts';
import { eraseAccount } from '../../../src/app/erase/erase.ts';
import type { EraseReport } from '../../../src/app/erase/report.ts';
import { readSettings } from '../../../src/base/config.ts';
import { silentLog } from '../../../src/base/log.ts';
import { EVENT_JOB_OPTIONS, eventQueue } from '../../../src/sync/events/accept-event.ts';
import { readEvents } from '../../../src/sync/events/erase-events.ts';
import { openHarness } from '../../support/harness.ts';
import { ringneck } from '../../support/ringneck.ts';
import { runHere } from '../../support/run-here.ts';
import { type Sandbox, startSandbox } from '../../support/sandbox.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';
import { rowsOf, withDuckDB } from '../../support/warehouse.ts';
import { seed, someOf } from '../../support/whole.ts';

const folder = tempFolder();
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ count: 2, from: '2025-01-01', to: '2025-01-31' });
});
afterAll(() => sandbox.close());

function surroundings(name: string) {
  const data = join(folder, name);
  const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: sandbox.url, RINGNECK_LOG_LEVEL: 'warn' };
  const cli = (args: string[]) => runHere(args, { env });
  const erase = async (who = 'ada'): Promise<{ code: unknown; stderr: string; report: EraseReport }> => {
    const { code, stdout, stderr } = await cli(['account', 'remove', who, '--erase', '--yes', '--json']);
    return { code, stderr, report: JSON.parse(stdout) as EraseReport };
  };
  return { data, env, cli, erase };
}

test('files on another disk are replaced there, halves of copies go, and what cannot be searched is said', async () => {
  const { data, erase } = surroundings('linked');
  const disk = join(folder, 'disk');
  mkdirSync(disk);
  const harness = await openHarness(data, sandbox.url, { queue: 'embedded' });
  await harness.add(sandbox.people.map(({ token }, i) => ({ name: i ? 'adam' : 'ada', token })));
  await harness.backfill({ from: '2025-01-01', to: '2025-01-02' });
  await harness.commands.snapshot({});
  await harness.close();
  const half = join(data, 'snapshots/ringneck-2025-01-04T0000Z.duckdb.new');
  mkdirSync(join(data, 'snapshots'), { recursive: true });
  // What kills have left: a PID of nobody, one that is ours now, and copies that were never published.
  for (const path of [half, `${half}.wal`, join(data, 'snapshot.duckdb.new')]) copyFileSync(join(data, 'snapshot.duckdb'), path);
  const halves = [
    'warehouse.duckdb.torn-block-6',
    'warehouse.duckdb.before-upgrade-20250101T000000Z-0123abcd',
    'erasing-events.json.999999999.new',
    'sql_history.999999999.0123456789abcdef.new',
    'console-sessions.json.999999999.0123456789abcdef.new',
  ];
  for (const name of [...halves, `accounts.secret.${process.pid}.0123456789abcdef.new`]) {
    writeFileSync(join(data, name), sandbox.people[0]!.userId);
  }
  for (const name of ['warehouse.duckdb', 'snapshot.duckdb', 'queue']) {
    renameSync(join(data, name), join(disk, name));
    symlinkSync(join(disk, name), join(data, name));
  }
  const before = statSync(join(disk, 'warehouse.duckdb')).ino;
  copyFileSync(join(disk, 'warehouse.duckdb'), join(data, 'copy.bak'));
  copyFileSync(join(disk, 'warehouse.duckdb'), join(folder, 'elsewhere.db'));
  symlinkSync(join(folder, 'elsewhere.db'), join(data, 'elsewhere'));
  writeFileSync(join(data, 'nights.csv.gz'), gzipSync('ada'));

  const { code, report } = await erase();
  expect(code).toBe(1);
  expect(report.unsearched).toEqual([{ file: join(data, 'nights.csv.gz'), reason: expect.stringContaining('neither a text') }]);
  expect([...new Set(report.found.map(({ file }) => file))].toSorted()).toEqual([join(data, 'copy.bak'), join(data, 'elsewhere')]);
  expect(readdirSync(data).filter(name => /\.new|\.tmp$|torn|^erasing/.test(name))).toEqual([]);
  expect(readdirSync(join(data, 'snapshots'))).toEqual([]);
  expect(statSync(join(disk, 'warehouse.duckdb')).ino).not.toBe(before);
  expect(readdirSync(disk).toSorted()).toEqual(['queue', 'snapshot.duckdb', 'warehouse.duckdb']);
  expect(readdirSync(join(disk, 'queue'))).toEqual([]);
  for (const name of ['warehouse.duckdb', 'snapshot.duckdb']) {
    const people = await withDuckDB(join(disk, name), connection => rowsOf(connection, 'SELECT DISTINCT user_id FROM sleep'));
    expect(people).toEqual([{ user_id: 'adam' }]);
  }
});

test('a link for the queue to a disk of others: what is theirs stays, and so does the warehouse that lies there too', async () => {
  const { data, erase } = surroundings('shared-disk');
  const disk = join(folder, 'shared');
  const harness = await openHarness(data, sandbox.url, { queue: 'embedded' });
  await harness.add(sandbox.people.map(({ token }, i) => ({ name: i ? 'adam' : 'ada', token })));
  await harness.backfill({ from: '2025-01-01', to: '2025-01-02' });
  await harness.close();
  renameSync(join(data, 'queue'), disk);
  symlinkSync(disk, join(data, 'queue'));
  renameSync(join(data, 'warehouse.duckdb'), join(disk, 'warehouse.duckdb'));
  symlinkSync(join(disk, 'warehouse.duckdb'), join(data, 'warehouse.duckdb'));
  // Theirs, beside what the queue kept aside when it was broken and what an erasing that was killed has left.
  for (const name of ['photos', 'database.backup', 'database.broken-window', '../shared.erased']) mkdirSync(join(disk, name));
  for (const name of ['thesis.txt', 'photos/sea.jpg', '../shared.erased/notes.txt']) writeFileSync(join(disk, name), 'theirs');
  writeFileSync(join(disk, 'diary.txt'), sandbox.people[0]!.userId);
  for (const name of ['database.broken-2025-01-04T10-20-30.123Z', 'database.removed', 'database.new']) {
    mkdirSync(join(disk, name));
    writeFileSync(join(disk, name, 'PG_VERSION'), sandbox.people[0]!.userId);
  }

  expect(await erase()).toMatchObject({ code: 0, report: { found: [] } });
  const theirs = ['database.backup', 'database.broken-window', 'diary.txt', 'photos', 'thesis.txt'];
  expect(readdirSync(disk).toSorted()).toEqual([...theirs, 'warehouse.duckdb']);
  for (const name of ['thesis.txt', 'photos/sea.jpg', '../shared.erased/notes.txt']) {
    expect(readFileSync(join(disk, name), 'utf8')).toBe('theirs');
  }
  const people = await withDuckDB(join(disk, 'warehouse.duckdb'), connection => rowsOf(connection, 'SELECT DISTINCT user_id FROM sleep'));
  expect(people).toEqual([{ user_id: 'adam' }]);
});

test('a snapshot in a folder that others can write is taken away, for none can be made there', async () => {
  const { data, env } = surroundings('shared-snapshot');
  const harness = await openHarness(data, sandbox.url);
  await harness.add(sandbox.people.map(({ token }, i) => ({ name: i ? 'adam' : 'ada', token })));
  const shared = join(folder, 'of-all');
  const snapshot = join(shared, 'snapshot.duckdb');
  await harness.app.warehouse.snapshot(snapshot, 0o600);
  await harness.close();
  chmodSync(shared, 0o1777);
  const settings = readSettings({ ...env, RINGNECK_SNAPSHOT: snapshot });
  expect(await eraseAccount({ settings, log: silentLog }, 'ada')).toMatchObject({ snapshot: null, found: [] });
  expect(readdirSync(shared)).toEqual([]);
});

test('a database that is no snapshot is left as it is, wherever the snapshot is said to be', async () => {
  const { data, env } = surroundings('foreign');
  const harness = await openHarness(data, sandbox.url);
  await harness.add(sandbox.people.map(({ token }, i) => ({ name: i ? 'adam' : 'ada', token })));
  await harness.close();
  const theirs = join(folder, 'theirs.duckdb');
  await withDuckDB(theirs, connection => connection.run('CREATE TABLE theirs AS SELECT 42 AS n'));
  const erased = await ringneck(['account', 'remove', 'ada', '--erase', '--yes'], { env: { ...env, RINGNECK_SNAPSHOT: theirs } });
  expect(erased).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`RINGNECK_SNAPSHOT is a file that is no snapshot, ${theirs}: move it away or name another file`),
  });
  expect(await withDuckDB(theirs, connection => rowsOf(connection, 'FROM theirs'))).toEqual([{ n: 42 }]);
});

test('what comes of an erased person afterwards is not noted, until the account is there again', async () => {
  const { data, erase } = surroundings('after');
  const [person] = sandbox.people;
  const event = (userId: string, time: number) => ({
    name: 'event',
    data: {
      receivedAt: 1_736_000_000_000_000 + time,
      event: JSON.stringify({
        event_type: 'create',
        data_type: time >= 3 ? 'strange' : 'sleep',
        object_id: `object-${time}`,
        event_time: '2025-01-02T08:00:00Z',
        user_id: userId,
      }),
      misses: 0,
    },
    opts: EVENT_JOB_OPTIONS,
  });
  /** Works off events, and gives what the ledger says of them. */
  const settle = async (...events: ReturnType<typeof event>[]) => {
    const harness = await openHarness(data, sandbox.url, { queue: 'embedded' });
    const { queues, warehouse } = await harness.app.pipeline();
    await queues.addAll(await eventQueue(warehouse), events);
    const { stop } = await startFetching(await harness.app.pipeline());
    await until('the events are worked off', async () => (await readEvents({ warehouse, queues })).length === 0);
    await stop();
    const noted = await harness.read('SELECT object_id, user_id, outcome FROM sync.events ORDER BY received_at');
    const meta = String(await harness.read('SELECT value FROM sync.meta'));
    await harness.close();
    return { noted, meta };
  };
  const first = await openHarness(data, sandbox.url);
  await first.add([{ name: 'ada', token: person!.token }]);
  // The same person once more, and so nothing that is erased is known by the id alone.
  await first.keep([{ name: 'ben', token: person!.token, serviceUserId: person!.userId }]);
  await first.close();
  expect((await erase('ada')).report).toMatchObject({ same_person: ['ben'], found: [] });
  expect((await erase('ben')).report).toMatchObject({ same_person: [], found: [] });

  const { noted, meta } = await settle(event(person!.userId, 1), event('somebody-else', 2), event(person!.userId, 3));
  expect(noted).toEqual([['object-2', null, 'unknown_user']]);
  expect(meta).not.toContain(person!.userId);

  const again = await openHarness(data, sandbox.url);
  await again.add([{ name: 'ada', token: person!.token }]);
  await again.close();
  expect((await settle(event(person!.userId, 4))).noted.map(([id, user]) => [id, user])).toEqual([
    ['object-2', null],
    ['object-4', 'ada'],
  ]);
});

test('while an account is being erased nobody reads, and the command that finishes it says what it found', async () => {
  const { data, env, cli } = surroundings('interrupted');
  const harness = await openHarness(data, sandbox.url);
  await harness.add([{ name: 'complete', token: sandbox.people[0]!.token }]);
  await harness.close();
  mkdirSync(join(data, 'out'));
  writeFileSync(join(data, 'out/export.json'), '{}');
  writeFileSync(join(data, 'token.txt'), sandbox.people[0]!.token);
  // As a process that was killed at once has left it; one of an earlier version knew of no second account.
  const marker = { format: 1, name: 'complete', serviceUserIds: null, queue: 'embedded' };
  writeFileSync(join(data, 'erasing.json'), JSON.stringify(marker));
  const read = await cli(['sql', 'SELECT 1']);
  expect(read).toMatchObject({ code: 75, stdout: '', stderr: expect.stringContaining('is being erased') });
  const listed = await runHere(['account', 'list', '--json'], { env });
  expect(listed).toMatchObject({ code: 1, stdout: '[]\n' });
  expect(listed.stderr).toContain(`still found of complete:\n  the token in ${join(data, 'token.txt')}\n`);
  expect(listed.stderr).toContain(`exports, not searched and left as they are:\n  ${join(data, 'out')}\n`);
  expect(existsSync(join(data, 'erasing.json'))).toBe(false);
  expect(await cli(['account', 'list'])).toMatchObject({ code: 0, stdout: '' });
});

test('an account that is called like a word of our own files is not found in them', async () => {
  const { data, erase } = surroundings('words');
  const harness = await openHarness(data, sandbox.url);
  const names = ['format', '1', 'ringneck', 'backfill', 'snapshot', 'accounts', 'check'];
  await harness.keep(names.map((name, i) => ({ name, token: sandbox.people[i % 2]!.token })));
  await harness.backfill({ users: ['check'], from: '2025-01-01', to: '2025-01-01' });
  await harness.commands.snapshot({});
  await harness.commands.mirrorToken({ name: '1' });
  await harness.commands.mirrorToken({ name: 'check' });
  await harness.commands.datedSnapshot({});
  await harness.close();
  await withDuckDB(join(data, 'warehouse.duckdb'), connection =>
    connection.run(
      `INSERT INTO sync.events (received_at, outcome, reason)
       VALUES (TIMESTAMP '2025-01-01 00:00:00', 'unknown_user', 'no account is mapped to this service user: ringneck account map NAME somebody')`,
    ),
  );
  expect(readFileSync(join(data, 'accounts.secret'), 'utf8')).toContain('"format"');
  for (const name of someOf(names.slice(0, 5), { more: 1 }))
    expect(await erase(name), `${name}, seed ${seed}`).toMatchObject({ code: 0, report: { found: [], unsearched: [] } });
});

test('exports in the data folder are listed, others cannot be known, and its help says so', async () => {
  const { data, cli, erase } = surroundings('exports');
  const harness = await openHarness(data, sandbox.url);
  await harness.add([{ name: 'ada', token: sandbox.people[0]!.token }]);
  await harness.backfill({ users: ['ada'], from: '2025-01-01', to: '2025-01-01' });
  await harness.close();
  for (const out of [join(data, 'out'), join(folder, 'out')]) expect((await cli(['export', '--out', out])).code).toBe(0);
  expect((await erase()).report).toMatchObject({ found: [], unsearched: [], exports: [join(data, 'out')] });
  const { stdout } = await cli(['account', 'remove', '--help']);
  expect(stdout).toContain('exports, of which those in the data folder are listed;');
});
