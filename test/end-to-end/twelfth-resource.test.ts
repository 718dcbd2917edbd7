import { expect, onTestFinished, test } from 'vitest';
import { resources } from '../../schema/index.ts';
import type { WireDocument } from '../../schema/resource.ts';
import { serveMirror } from '../../src/app/mirror.ts';
import { WORKOUTS, workout } from '../fixtures/workout.ts';
import { openHarness } from '../support/harness.ts';
import { startSandbox } from '../support/sandbox.ts';
import { findBroken } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { ask, findDifference, readCollection } from '../support/wire-reader.ts';

const folder = tempFolder();
const range = { from: '2025-03-04', to: '2025-03-07' };
const PATH = '/v2/usercollection/Workout';

test('a document type that is declared in one file is served, described, backfilled, stored and mirrored without another edit', async () => {
  const twelve = [...resources, workout];
  const isLater = (a: WireDocument, day: string, id: string) => [String(a.day), String(a.id)].join() > [day, id].join();
  const sandbox = await startSandbox({
    count: 1,
    ...range,
    resources: twelve,
    settings: { pageSize: 2 },
    wrap: source => ({
      ...source,
      list: async (userId, resource, query) => {
        if (resource !== workout) return source.list(userId, resource, query);
        const { from = '', to = '9', after, limit } = query;
        return WORKOUTS.filter(({ day }) => String(day) >= from && String(day) <= to)
          .filter(document => !after || isLater(document, after.day, after.id))
          .slice(0, limit);
      },
      find: async (userId, resource, id) =>
        resource === workout ? WORKOUTS.find(document => document.id === id) : source.find(userId, resource, id),
    }),
  });
  onTestFinished(() => sandbox.close());
  const [person] = sandbox.people;
  const harness = await openHarness(folder, sandbox.url, { resources: twelve });
  await harness.add(sandbox.people);
  expect(await harness.backfill(range)).toMatchObject({ state: 'complete', failures: [], rejected: 0 });

  expect(
    await harness.read(
      `SELECT id, day, activity, calories, effort_perceived, effort_zones_hard, pulse_count, start_datetime_offset, extra
       FROM workout ORDER BY id`,
    ),
  ).toEqual([
    ['w-1', '2025-03-05', 'running', 412.5, 7, 600, 3, 20_700, null],
    ['w-2', '2025-03-06', 'unicycling', null, null, null, null, -28_800, null],
    ['w-3', '2025-03-06', 'cycling', null, 3, null, 0, 0, '{"effort":{"mood":"fine"}}'],
  ]);
  expect(await harness.read('SELECT value FROM workout_pulse ORDER BY ts')).toEqual([[120], [null], [131.5]]);
  expect(await harness.read('SELECT path, kind FROM sync.drift ORDER BY path')).toEqual([
    ['activity', 'unknown value'],
    ['effort.mood', 'unknown field'],
  ]);
  expect(await findBroken(harness.read)).toEqual([]);
  const [account] = (await harness.commands.status({})).accounts;
  expect(account!.collections.find(({ name }) => name === 'workout')).toMatchObject({ state: 'not_asked', newest_day: '2025-03-06' });

  const mirror = await serveMirror(harness.app, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => mirror.close());
  const { token } = await harness.commands.mirrorToken({ name: person!.name });
  const days = { start_date: range.from, end_date: range.to };
  for (const [url, bearer] of [
    [sandbox.url, person!.token],
    [mirror.url, token],
  ] as const) {
    expect(findDifference(WORKOUTS, (await readCollection(url, PATH, bearer, days))!)).toBeUndefined();
    expect(findDifference([WORKOUTS[1]!], [(await ask(url, `${PATH}/w-2`, bearer)).body])).toBeUndefined();
    const { body } = await ask(url, '/openapi.json');
    expect(Object.keys(body.paths as object)).toEqual(expect.arrayContaining([PATH, `${PATH}/{document_id}`]));
    expect(JSON.stringify(body)).toContain('Heart rate during the workout');
  }
});
