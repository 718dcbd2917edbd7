import { expect, test } from 'vitest';
import { resources } from '../../schema/index.ts';
import { SPECIFIED } from '../support/declared.ts';
import { normalise } from '../support/equal-in-meaning.ts';
import { randomDocument, randomFrom } from '../support/random-documents.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, store } from '../support/warehouse.ts';
import * as wire from '../support/wire.ts';

const folder = tempFolder();

const DOCUMENTS = {
  daily_activity: wire.ACTIVITY,
  daily_readiness: wire.READINESS,
  daily_resilience: wire.RESILIENCE,
  daily_sleep: wire.DAILY_SLEEP,
  daily_spo2: wire.SPO2,
  daily_stress: wire.STRESS,
  ring_configuration: wire.RING,
  session: wire.SESSION,
  sleep: wire.SLEEP,
  sleep_time: wire.SLEEP_TIME,
  vo2_max: wire.VO2_MAX,
};

test('there is a hand-made document of every resource', () => {
  expect(Object.keys(DOCUMENTS).sort()).toEqual(SPECIFIED.map(({ name }) => name).sort());
});

test('every hand-made document comes back equal in meaning', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  for (const [name, document] of Object.entries(DOCUMENTS)) {
    await store(warehouse, name, [document]);
    const [stored] = await warehouse.readDocuments(name, `id = '${document.id}'`);
    expect(normalise(stored!.document)).toEqual(normalise(document));
  }
  await warehouse.close();
});

test('required keys are written always, optional ones when they hold something', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  await store(warehouse, 'daily_spo2', [
    { id: 'o-1', day: '2025-01-15', spo2_percentage: { average: null }, breathing_disturbance_index: null },
  ]);
  await store(warehouse, 'daily_readiness', [{ id: 'r-1', day: '2025-01-15' }]);
  await store(warehouse, 'vo2_max', [{ id: 'v-1', day: '2025-01-15', timestamp: '2025-01-15T08:00:00' }]);
  await store(warehouse, 'sleep', [{ id: 's-1', day: '2025-01-15', readiness: { score: 70 }, low_battery_alert: false, period: 0 }]);
  expect((await warehouse.readDocuments('daily_spo2', 'true'))[0]!.document).toEqual({ id: 'o-1', day: '2025-01-15' });
  expect((await warehouse.readDocuments('daily_readiness', 'true'))[0]!.document).toEqual({
    id: 'r-1',
    contributors: {},
    day: '2025-01-15',
    timestamp: null,
  });
  expect((await warehouse.readDocuments('vo2_max', 'true'))[0]!.document).toEqual({
    id: 'v-1',
    day: '2025-01-15',
    timestamp: '2025-01-15T08:00:00',
    vo2_max: null,
  });
  expect((await warehouse.readDocuments('sleep', 'true'))[0]!.document).toEqual({
    id: 's-1',
    bedtime_end: null,
    bedtime_start: null,
    day: '2025-01-15',
    low_battery_alert: false,
    period: 0,
    readiness: { contributors: {}, score: 70 },
    time_in_bed: null,
  });
  await warehouse.close();
});

test('an object of which only unknown fields came keeps the keys that are promised in it', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  await store(warehouse, 'daily_spo2', [{ id: 'o-1', day: '2025-01-15', spo2_percentage: { lowest: 91 } }]);
  expect((await warehouse.readDocuments('daily_spo2', 'true'))[0]!.document).toEqual({
    id: 'o-1',
    day: '2025-01-15',
    spo2_percentage: { average: null, lowest: 91 },
  });
  await warehouse.close();
});

test.each(resources.map(resource => [resource.name, resource] as const))(
  '300 random documents of %s come back equal in meaning, and are then unchanged',
  async (name, resource) => {
    const warehouse = await openWarehouse(newPath(folder));
    const random = randomFrom(7);
    const documents = Array.from({ length: 300 }, (_, i) => randomDocument(resource, random, `id-${String(i).padStart(3, '0')}`));
    expect(await store(warehouse, name, documents)).toMatchObject({ stored: 300, rejected: 0 });
    const stored = await warehouse.readDocuments(name, 'true ORDER BY id');
    for (let i = 0; i < documents.length; i++) expect(normalise(stored[i]!.document)).toEqual(normalise(documents[i]));
    expect(
      await store(
        warehouse,
        name,
        stored.map(({ document }) => document),
      ),
    ).toMatchObject({ stored: 0, unchanged: 300, rejected: 0 });
    await warehouse.close();
  },
);

test('the comparer of these tests tells apart what differs', () => {
  const same = (a: unknown, b: unknown) => expect(normalise(a)).toEqual(normalise(b));
  const other = (a: unknown, b: unknown) => expect(normalise(a)).not.toEqual(normalise(b));
  same({ a: null, b: 1, c: { d: null } }, { b: 1 });
  same({ t: '2025-01-01T00:00:00Z' }, { t: '2025-01-01T00:00:00.000+00:00' });
  same({ t: '2025-01-01T00:00:00.500+0530' }, { t: '2025-01-01T00:00:00.5+05:30' });
  other({ t: '2025-01-01T00:00:00+01:00' }, { t: '2024-12-31T23:00:00+00:00' });
  other({ t: '2025-01-01T00:00:00.001Z' }, { t: '2025-01-01T00:00:00Z' });
  other({ items: [1, null] }, { items: [1] });
  other({ a: 1 }, { a: '1' });
  other({ a: { b: 1 } }, { a: { b: 2 } });
  other({ a: false }, {});
  other({ a: '' }, {});
});
