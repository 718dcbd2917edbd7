import { chmodSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { AppCommands } from '../../src/app/commands.ts';
import { openConsoleHere } from '../support/console-harness.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { placePeople, sleepOf } from './people-by-hand.ts';

const folder = tempFolder();
const day = (n: number) => new Date(Date.UTC(2025, 0, n)).toISOString().slice(0, 10);
/** 16 January 2025, 13:45 in UTC. */
const NOW = Date.UTC(2025, 0, 16, 13, 45);

/** Nights of the first days of January, from half past midnight to half past eight by a clock an hour ahead of UTC. */
const nights = (count: number, change: (n: number) => object = () => ({})) =>
  Array.from({ length: count }, (_, i) =>
    sleepOf(day(i + 1), `${day(i + 1)}T00:30:00+01:00`, `${day(i + 1)}T08:30:00+01:00`, {
      ...{ total_sleep_duration: 21_600, time_in_bed: 28_800, average_hrv: 50 + 2 * (i % 2), lowest_heart_rate: 55 },
      ...change(i + 1),
    }),
  );

const HOSTILE = '<img src=x onerror=alert(1)>';
const PEOPLE: Parameters<typeof placePeople>[0] = {
  ann: { sleep: nights(16, n => (n === 16 ? { average_hrv: 80 } : {})) },
  ben: { sleep: nights(16) },
  cleo: { sleep: nights(13) },
  dan: { sleep: nights(15) },
  [HOSTILE]: {},
  ['n'.repeat(200)]: { sleep: nights(2) },
};

let placed: Promise<string> | undefined;
const enter = async (grant = {}) => {
  placed ??= placePeople(PEOPLE);
  const served = await openConsoleHere(await placed, { now: () => NOW });
  return served.enter(grant);
};
const textOf = (sentence: { text: string }[]) => sentence.map(({ text }) => text).join('');
const idsOf = ({ people }: { people: { id: string }[] }) => people.map(({ id }) => id);

test('who needs a look comes first, each with the reason', async () => {
  const operator = await enter();
  const { status, body } = await operator.ask('GET people');
  expect(status).toBe(200);
  expect(body).toMatchObject({
    greeting: 'Good afternoon',
    offset: 3600,
    everybody: 6,
    total: 6,
    page: 1,
    pages: 1,
    first_run: null,
    more: 0,
  });
  expect(body.people.map(({ id, state, says, is_last_night }: Record<string, unknown>) => [id, state, says, is_last_night])).toEqual([
    ['ann', 'unusual', 'unusual', true],
    ['cleo', 'long_missing', 'no night since 13 Jan', false],
    ['n'.repeat(200), 'long_missing', 'no night since 2 Jan', false],
    [HOSTILE, 'empty', 'no night stored yet', false],
    ['dan', 'waiting', 'no night yet', false],
    ['ben', 'usual', 'as usual', true],
  ]);
  expect(textOf(body.sentence)).toBe(
    '2 of 6 people have last night. Heart rate variability (80 ms) is well above what is usual for ann. ' +
      '2 have had no night for two days and more. No reading of the last 7 days has failed.',
  );
  expect(body.needs_a_look).toEqual([
    { id: 'ann', text: 'Heart rate variability (80 ms) is well above what is usual for ann.' },
    { id: 'cleo', text: 'No night since Monday 13 January 2025.' },
    { id: 'n'.repeat(200), text: 'No night since Thursday 2 January 2025.' },
    { id: HOSTILE, text: 'No night is stored yet.' },
  ]);
});

test('a row has the night by their clock, the nights and the days with their gaps', async () => {
  const operator = await enter();
  const { body } = await operator.ask('GET people', '?q=DAN');
  expect(idsOf(body)).toEqual(['dan']);
  const [dan] = body.people;
  expect(dan.night).toEqual({
    ...{ day: '2025-01-15', asleep: 21_600, start: Date.UTC(2025, 0, 14, 23, 30) / 1000, start_offset: 3600 },
    ...{ end: Date.UTC(2025, 0, 15, 7, 30) / 1000, end_offset: 3600 },
  });
  expect(dan.nights).toEqual({
    day: Array.from({ length: 14 }, (_, i) => day(i + 3)),
    start: [...Array(13).fill(30), null],
    end: [...Array(13).fill(510), null],
  });
  const [hrv, lowest, temperature] = dan.sparks;
  expect(hrv).toMatchObject({ metric: 'average_hrv', value: null, is_unusual: false });
  expect(hrv.day).toEqual(Array.from({ length: 28 }, (_, i) => day(i - 11)));
  expect(hrv.values).toEqual([...Array(12).fill(null), 50, 52, 50, 52, 50, 52, 50, 52, 50, 52, 50, 52, 50, 52, 50, null]);
  // Usual from 14 nights on: median of seven 50s and seven 52s, all at a distance of 1. The last day has nothing yet.
  expect(hrv.median.slice(25)).toEqual([null, 51, null]);
  expect(hrv.spread.slice(25)).toEqual([null, 1.4826, null]);
  expect(lowest.values.slice(-3)).toEqual([55, 55, null]);
  expect(temperature.values).toEqual(Array(28).fill(null));
});

test('people are found, ordered and paged', async () => {
  const operator = await enter();
  const ask = async (query: string) => (await operator.ask('GET people', query)).body;
  expect(idsOf(await ask('?sort=name'))).toEqual([HOSTILE, 'ann', 'ben', 'cleo', 'dan', 'n'.repeat(200)]);
  expect(idsOf(await ask('?sort=freshest'))).toEqual(['ann', 'ben', 'dan', 'cleo', 'n'.repeat(200), HOSTILE]);
  expect(await ask('?q=nobody')).toMatchObject({ people: [], total: 0, everybody: 6, page: 1, pages: 1 });
  expect(await ask('?page=7')).toMatchObject({ page: 1, total: 6 });
  expect((await operator.ask('GET people', '?sort=worst')).status).toBe(400);
});

test('a thousand people are sixty a page', async () => {
  const data = await placePeople(Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`p${String(i).padStart(4, '0')}`, {}])));
  const operator = await (await openConsoleHere(data, { now: () => NOW })).enter();
  const { body } = await operator.ask('GET people', '?sort=name&page=17');
  expect(body).toMatchObject({ total: 1000, page: 17, pages: 17, more: 995 });
  expect(idsOf(body)).toEqual(Array.from({ length: 40 }, (_, i) => `p0${960 + i}`));
  expect(body.needs_a_look).toHaveLength(5);
});

test('a person is told of their own night alone', async () => {
  const ann = await enter({ role: 'person', person: 'ann' });
  const { body } = await ann.ask('GET people');
  expect(idsOf(body)).toEqual(['ann']);
  expect(textOf(body.sentence)).toBe(
    'Your last night is here. Heart rate variability (80 ms) is well above what is usual for you. No reading of the last 7 days has failed.',
  );
});

test('while much is read a person is told so, for what is shown is of before', async () => {
  placed ??= placePeople(PEOPLE);
  const told = async (kinds: string[], grant = {}) => {
    const activeRuns = async () => kinds.map(kind => ({ kind }));
    const commands = { activeRuns, isSnapshotOfAnother: async () => false } as unknown as AppCommands;
    const served = await openConsoleHere(await (placed ?? ''), { now: () => NOW, commands });
    return textOf((await (await served.enter(grant)).ask('GET people')).body.sentence);
  };
  // All others see each run.
  expect(await told(['sweep', 'backfill'])).toMatch(/has failed\.$/);
  expect(await told(['nightly'], { role: 'person', person: 'ann' })).toMatch(/has failed\. Data is being read just now\.$/);
  expect(await told(['sweep'], { role: 'person', person: 'ann' })).toMatch(/has failed\.$/);
});

test('where nobody is followed the first sign-in is told, by the way that is set up', async () => {
  const none = await (await openConsoleHere(`${folder}/none`)).enter();
  expect((await none.ask('GET people')).body).toMatchObject({
    people: [],
    first_run: { followed: 0, text: 'Takes the token of the first person:', command: 'ringneck account add NAME', can_invite: false },
  });
  const enrolment = { publicUrl: 'https://a.example', studyName: 'A', studyContact: 'b', studyText: undefined };
  const study = await (await openConsoleHere(`${folder}/study`, { settings: { enrolment } })).enter();
  // Without an owner there is nobody to make a link.
  expect((await study.ask('GET people')).body.first_run).toMatchObject({ command: 'ringneck account invite NAME', can_invite: false });
});

test('before the first snapshot it is told how many are followed, and of each question that there is none yet', async () => {
  const commands = {
    activeRuns: async () => [],
    listAccounts: async () => ['active', 'parked', 'removed'].map(state => ({ state })),
    isSnapshotOfAnother: async () => false,
  } as unknown as AppCommands;
  const { ask } = await (await openConsoleHere(`${folder}/unpublished`, { commands })).enter();
  expect((await ask('GET people')).body.first_run).toMatchObject({ followed: 2 });
  const told = {
    error: {
      kind: 'missing',
      message: 'There is no snapshot yet.',
      help: 'While ringneck up runs it is made by itself; ringneck snapshot makes it at once.',
    },
  };
  for (const name of ['GET people/ann/night/newest', 'GET people/ann/raster', 'GET coverage', 'GET catalogue'])
    expect((await ask(name)).body, name).toEqual(told);
});

test('of a snapshot that is damaged it is said how it is made anew', async () => {
  const data = await placePeople({ ada: {} });
  const snapshot = join(data, 'snapshot.duckdb');
  chmodSync(snapshot, 0o600);
  truncateSync(snapshot, 100_000);
  const { ask } = await (await openConsoleHere(data)).enter();
  const { status, body } = await ask('GET people');
  expect([status, body.error.help]).toEqual([500, 'Where the file is damaged, ringneck snapshot makes it anew.']);
});
