import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { TryLaterError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import { Catalogue } from '../../src/machines/catalogue.ts';
import { CommonFiles, listDiffering, pullCommonFiles, pushCommonFiles, readCommonFiles } from '../../src/machines/files.ts';
import { CommonInbox, EventAcceptance } from '../../src/machines/inbox.ts';
import { findHolder, Lease } from '../../src/machines/lease.ts';
import { listMachines, notePresence } from '../../src/machines/presence.ts';
import { hasLake, newCatalogue, testPostgres } from '../support/lake.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();
const TIMES = { lastsMs: 60_000, renewMs: 60_000, lookMs: 10 };

async function openMachine(address: ReturnType<typeof newCatalogue>, name: string) {
  const data = join(folder, `${address.catalogue}-${name}`);
  mkdirSync(data);
  const catalogue = await Catalogue.open({ address });
  const lost: string[] = [];
  const options = { catalogue, folder: data, times: TIMES, onLost: (message: string) => void lost.push(message) };
  const take = async () => (await Lease.take(options, { onHeld: () => Promise.reject(new Error('it is held')) }))!;
  let looked = 0;
  const wait = (): Promise<Lease | undefined> => Lease.take(options, { onHeld: () => void looked++ });
  const filesOf = (lease: Lease) => {
    const files = new CommonFiles(catalogue.place, lease.token, () => lease.lose());
    onTestFinished(() => files.close());
    return files;
  };
  onTestFinished(() => catalogue.close());
  return { data, catalogue, lost, take, wait, looked: () => looked, filesOf };
}

test.skipIf(!hasLake)('what the holder writes the next one has, and whoever was the holder writes nothing more', async () => {
  const address = newCatalogue();
  const [a, b] = [await openMachine(address, 'a'), await openMachine(address, 'b')];
  const lease = await a.take();
  await expect(b.take()).rejects.toThrow('it is held');
  expect(await findHolder(b.catalogue)).toMatchObject({ pid: process.pid });

  writeFileSync(join(a.data, 'accounts.secret'), 'of before');
  const files = a.filesOf(lease);
  pushCommonFiles(a.data, await readCommonFiles(a.catalogue), files);
  files.write('accounts.secret', 'renewed');
  files.write('moving.json', 'begun');
  files.remove('moving.json');

  testPostgres().psql(address.catalogue, `UPDATE ringneck.lease SET until = '-infinity'`);
  const next = await b.take();
  expect(() => files.write('accounts.secret', 'too late')).toThrow('accounts.secret was not written: another machine has taken the lake');
  expect(a.lost).toEqual(['another machine has taken the lake']);
  await expect(lease.ensure()).rejects.toThrow('another machine has taken the lake');

  writeFileSync(join(b.data, 'accounts.secret'), 'stale');
  writeFileSync(join(b.data, 'moving.json'), 'stale');
  const common = await readCommonFiles(b.catalogue);
  expect([...common]).toEqual([
    ['accounts.secret', 'renewed'],
    ['moving.json', null],
  ]);
  expect(listDiffering(b.data, common)).toEqual(['accounts.secret', 'moving.json']);
  pullCommonFiles(b.data, common);
  expect([readFileSync(join(b.data, 'accounts.secret'), 'utf8'), listDiffering(b.data, common)]).toEqual(['renewed', []]);
  await next.giveBack();
  expect(await findHolder(a.catalogue)).toBeUndefined();
});

test.skipIf(!hasLake)('a file that Postgres does not take is not written, and is when it is asked again', async () => {
  const address = newCatalogue();
  const { catalogue, take, filesOf } = await openMachine(address, 'a');
  const files = filesOf(await take());
  files.write('accounts.secret', 'first');
  const { psql, stop, start } = testPostgres();
  stop();
  expect(() => files.write('accounts.secret', 'second')).toThrow('accounts.secret cannot be written to the lake’s catalogue');
  start();
  files.write('accounts.secret', 'third');
  const read = () => readCommonFiles(catalogue).catch(() => undefined);
  await until('it is read', async () => (await read()) !== undefined);
  expect([...(await readCommonFiles(catalogue))]).toEqual([['accounts.secret', 'third']]);
  // Nobody but the writer of the lake sees them.
  psql('postgres', `DROP ROLE IF EXISTS a_reader; CREATE ROLE a_reader LOGIN`);
  psql(address.catalogue, 'GRANT SELECT ON ALL TABLES IN SCHEMA public TO a_reader');
  expect(() => psql(address.catalogue, 'SET ROLE a_reader; SELECT * FROM ringneck.files')).toThrow('permission denied for schema ringneck');
});

test.skipIf(!hasLake)('what comes after a later one of the same machine is not written', async () => {
  const { catalogue, take, filesOf } = await openMachine(newCatalogue(), 'a');
  const lease = await take();
  const [files, late] = [filesOf(lease), filesOf(lease)];
  files.write('accounts.secret', 'first');
  files.write('accounts.secret', 'second');
  expect(() => late.write('accounts.secret', 'first')).toThrow('accounts.secret was not written');
  expect([...(await readCommonFiles(catalogue))]).toEqual([['accounts.secret', 'second']]);
});

test.skipIf(!hasLake)('an answer that has waited through a pause of the process does not say that the lake is ours', async () => {
  const { data, catalogue } = await openMachine(newCatalogue(), 'a');
  const pause = { ms: 0 };
  const paused = Object.create(catalogue, {
    query: {
      value: async (sql: string, values: unknown[]) => {
        const rows = await catalogue.query(sql, values);
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pause.ms);
        return rows;
      },
    },
  }) as Catalogue;
  const lost: string[] = [];
  const options = {
    catalogue: paused,
    folder: data,
    times: { ...TIMES, lastsMs: 200 },
    onLost: (message: string) => void lost.push(message),
  };
  const lease = (await Lease.take(options, { onHeld: () => undefined }))!;
  await lease.ensure();
  pause.ms = 250;
  const message = 'the lake’s catalogue could not be asked for so long that another machine may have taken the lake';
  await expect(lease.ensure()).rejects.toThrow(message);
  await until('it is lost', () => lost.length > 0);
  expect(lost).toEqual([message]);
});

test.skipIf(!hasLake)('who waits for the lake does so through a restart of Postgres, and takes it when it is given back', async () => {
  const address = newCatalogue();
  const [a, b] = [await openMachine(address, 'a'), await openMachine(address, 'b')];
  const lease = await a.take();
  const waiting = b.wait();
  await until('it waits', () => b.looked() > 0);
  const { stop, start } = testPostgres();
  stop();
  start();
  const isOurs = () =>
    lease.ensure().then(
      () => true,
      () => false,
    );
  await until('Postgres answers', isOurs);
  await lease.giveBack();
  const taken = await waiting;
  expect([taken?.isHeld, lease.isHeld, a.lost, b.lost]).toEqual([true, false, [], []]);
  await taken?.giveBack();
});

test.skipIf(!hasLake)('events that come at once are written together, and one that Postgres refuses costs no other', async () => {
  const { catalogue } = await openMachine(newCatalogue(), 'a');
  const statements: unknown[][][] = [];
  const acceptance = new EventAcceptance({
    query: (sql, values = []) => {
      statements.push(values as unknown[][]);
      return catalogue.query(sql, values);
    },
  });
  const first = acceptance.accept('a', '{"n": 1}');
  const rest = [
    acceptance.accept('b', '{"n": 2}'),
    acceptance.accept('bad', '\0'),
    acceptance.accept('b', '{"n": 2}'),
    acceptance.accept('a', '{}'),
  ];
  await first;
  const settled = await Promise.allSettled(rest);
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  expect(statements.slice(0, 2).map(([signatures]) => signatures)).toEqual([['a'], ['b', 'bad', 'b', 'a']]);
  expect(await catalogue.query('SELECT signature, event FROM ringneck.inbox ORDER BY signature')).toEqual([
    { signature: 'a', event: '{"n": 1}' },
    { signature: 'b', event: '{"n": 2}' },
  ]);
});

test.skipIf(!hasLake)('who waits counts events that nobody has taken up yet', async () => {
  const { catalogue } = await openMachine(newCatalogue(), 'a');
  await new EventAcceptance(catalogue).accept('a signature', '{}');
  const lease = { token: '', ensure: () => Promise.reject(new Error('another machine works')), lose: () => undefined };
  const options = { catalogue, lease, log: silentLog, replayMs: 0 };
  const count = async (isReader: boolean) => (await CommonInbox.open({ ...options, isReader })).size;
  expect([await count(true), await count(false)]).toEqual([1, 0]);
});

test.skipIf(!hasLake)('while Postgres does not answer, each event that waits is told so', async () => {
  const { catalogue } = await openMachine(newCatalogue(), 'a');
  let asked = 0;
  const acceptance = new EventAcceptance({
    query: async () => {
      asked++;
      throw new TryLaterError('the catalogue does not answer');
    },
  });
  const settled = await Promise.allSettled(['a', 'b', 'c'].map(signature => acceptance.accept(signature, '{}')));
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  expect(asked).toBe(2);
  expect(await catalogue.query('SELECT FROM ringneck.inbox')).toEqual([]);
});

test('an event that comes while another has just been written waits for no third one', async () => {
  for (let hops = 0; hops < 8; hops++) {
    const acceptance = new EventAcceptance({ query: async () => [] });
    await acceptance.accept('a', '{}');
    for (let hop = 0; hop < hops; hop++) await undefined;
    await acceptance.accept('b', '{}');
  }
});

test.skipIf(!hasLake)('a machine that Redis does not answer is told who it answers, and nothing while it answers nobody', async () => {
  const address = newCatalogue();
  const answering = new Set(['a', 'b']);
  const told: string[] = [];
  const open = async (name: string) => {
    const { catalogue, data: folder } = await openMachine(address, name);
    const askQueue = async () => {
      if (!answering.has(name)) throw new TryLaterError('no answer');
    };
    const onCutOff = () => void told.push(name);
    onTestFinished(notePresence({ catalogue, folder, place: name, askQueue, onCutOff, times: { noteMs: 20, cutOffMs: 100 } }));
    return catalogue;
  };
  const catalogue = await open('a');
  await open('b');
  const listed = async () => (await listMachines(catalogue)).map(({ queue_seconds_ago }) => queue_seconds_ago);
  await until('both are there', async () => (await listed()).length === 2);
  expect(await listed()).toEqual([0, 0]);
  answering.clear();
  // Again while it is not so: an answer from before may still be on its way to its note.
  await until('neither is answered for long', async () => {
    const areLong = (await listed()).every(ago => ago !== null && ago >= 3600);
    if (!areLong) testPostgres().psql(address.catalogue, `UPDATE ringneck.machines SET queue_seen = now() - interval '1 hour'`);
    return areLong;
  });
  expect(told).toEqual([]);
  answering.add('b');
  await until('a is told', async () => told.length > 0);
  expect(new Set(told)).toEqual(new Set(['a']));
  answering.add('a');
  await until('a is answered again', async () => (await listed()).every(ago => ago === 0));
});
