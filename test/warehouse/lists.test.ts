import { expect, test } from 'vitest';
import { z } from 'zod';
import { day, identifier, objects, sample, text } from '../../schema/fields.ts';
import { resource } from '../../schema/resource.ts';
import { mapResource } from '../../src/warehouse/mapping.ts';
import { normalise } from '../support/equal-in-meaning.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, rows, store } from '../support/warehouse.ts';
import { drift, rejected } from './tolerance.ts';

// Documents whose day is not called `day`, and arrays of objects, which have a table of their own.

const folder = tempFolder();

const REST = {
  id: 'r-1',
  end_day: '2025-03-12',
  end_time: '2025-03-12T08:30:00.000+01:00',
  episodes: [
    { tags: ['fever', 'sore "throat"'], timestamp: '2025-03-09T19:00:00.000+01:00' },
    { tags: [], timestamp: '2025-03-10T10:15:30.000+01:00' },
  ],
  start_day: '2025-03-09',
  start_time: '2025-03-09T18:30:00.000+01:00',
};

const TAG = {
  id: 't-1',
  comment: 'two glasses of wine',
  start_day: '2025-03-09',
  start_time: '2025-03-09T21:00:00.000+01:00',
  tag_type_code: 'tag_generic_alcohol',
};

const EPISODES = 'FROM rest_mode_period_episodes ORDER BY sk, position';

test('a rest mode is one row, and its episodes are one row each', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  await store(warehouse, 'rest_mode_period', [REST]);
  expect(await rows(warehouse, 'SELECT * EXCLUDE (fetched_at, content_hash) FROM rest_mode_period')).toEqual([
    {
      user_id: 'ann',
      id: 'r-1',
      start_day: '2025-03-09',
      end_day: '2025-03-12',
      end_time: '2025-03-12 07:30:00',
      end_time_offset: 3600,
      episodes_count: 2,
      start_time: '2025-03-09 17:30:00',
      start_time_offset: 3600,
      extra: null,
      sk: 1,
    },
  ]);
  expect(await rows(warehouse, EPISODES)).toEqual([
    {
      sk: 1,
      user_id: 'ann',
      day: '2025-03-09',
      position: 0,
      tags: ['fever', 'sore "throat"'],
      timestamp: '2025-03-09 18:00:00',
      timestamp_offset: 3600,
    },
    { sk: 1, user_id: 'ann', day: '2025-03-09', position: 1, tags: [], timestamp: '2025-03-10 09:15:30', timestamp_offset: 3600 },
  ]);
  expect((await warehouse.readDocuments('rest_mode_period', 'true'))[0]!.document).toEqual(REST);
  expect(await drift(warehouse)).toEqual([]);
  await warehouse.close();
});

test('a tag is one row, under its own start_day', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  await store(warehouse, 'enhanced_tag', [TAG]);
  expect(await rows(warehouse, 'SELECT * EXCLUDE (fetched_at, content_hash) FROM enhanced_tag')).toEqual([
    {
      user_id: 'ann',
      id: 't-1',
      start_day: '2025-03-09',
      comment: 'two glasses of wine',
      custom_name: null,
      end_day: null,
      end_time: null,
      end_time_offset: null,
      start_time: '2025-03-09 20:00:00',
      start_time_offset: 3600,
      tag_type_code: 'tag_generic_alcohol',
      extra: null,
      sk: 1,
    },
  ]);
  expect((await warehouse.readDocuments('enhanced_tag', 'true'))[0]!.document).toEqual(TAG);
  expect(await rows(warehouse, `SELECT collection, day, documents FROM sync.document_days WHERE collection = 'enhanced_tag'`)).toEqual([
    { collection: 'enhanced_tag', day: '2025-03-09', documents: 1 },
  ]);
  await warehouse.close();
});

test('a new version replaces the rows of the old one, under another day too; a removed document leaves none', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const other = { ...REST, id: 'r-2' };
  await store(warehouse, 'rest_mode_period', [REST, other]);
  const [, second] = REST.episodes;
  await store(warehouse, 'rest_mode_period', [{ ...REST, start_day: '2025-03-08', episodes: [second] }]);
  expect(await warehouse.read('SELECT sk, day, position, tags::VARCHAR FROM rest_mode_period_episodes ORDER BY ALL')).toEqual([
    [2, '2025-03-09', 0, '["fever","sore \\"throat\\""]'],
    [2, '2025-03-09', 1, '[]'],
    [3, '2025-03-08', 0, '[]'],
  ]);
  await store(warehouse, 'rest_mode_period', [], ['r-2']);
  expect(await warehouse.read('SELECT sk FROM rest_mode_period_episodes')).toEqual([[3]]);
  expect(await store(warehouse, 'rest_mode_period', [{ ...REST, start_day: '2025-03-08', episodes: [second] }])).toMatchObject({
    stored: 0,
    unchanged: 1,
  });
  expect(await store(warehouse, 'rest_mode_period', [{ ...REST, start_day: '2025-03-08', episodes: [] }])).toMatchObject({ stored: 1 });
  expect(await warehouse.read('SELECT count(*) FROM rest_mode_period_episodes')).toEqual([[0]]);
  await warehouse.close();
});

test('an empty array, null and no key at all: no rows, and only the empty one comes back', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const { episodes: _, ...none } = REST;
  await store(warehouse, 'rest_mode_period', [
    { ...none, id: 'a', episodes: [] },
    { ...none, id: 'b', episodes: null },
    { ...none, id: 'c' },
  ]);
  expect(await warehouse.read('SELECT id, episodes_count FROM rest_mode_period ORDER BY id')).toEqual([
    ['a', 0],
    ['b', null],
    ['c', null],
  ]);
  const stored = await warehouse.readDocuments('rest_mode_period', 'true ORDER BY id');
  expect(stored.map(({ document }) => document.episodes)).toEqual([[], null, null]);
  expect(await drift(warehouse)).toEqual([['rest_mode_period', 'episodes', 'missing', 2]]);
  await warehouse.close();
});

test('of an array with strange objects each has its row, and the array is whole in extra; drift tells the place', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const strange = {
    ...REST,
    episodes: [
      { tags: ['fever'], timestamp: 'noon' },
      { tags: 'fever', timestamp: '2025-03-10T10:00:00Z', mood: 'low' },
      'fever',
      { tags: ['nul \u0000'] },
    ],
  };
  await store(warehouse, 'rest_mode_period', [strange]);
  expect(await warehouse.read('SELECT position, tags::VARCHAR, "timestamp" FROM rest_mode_period_episodes ORDER BY position')).toEqual([
    [0, '["fever"]', null],
    [1, null, Date.parse('2025-03-10T10:00:00Z') * 1000],
    [2, null, null],
    [3, null, null],
  ]);
  expect(await warehouse.read('SELECT path, kind, example FROM sync.drift ORDER BY path, kind')).toEqual([
    ['episodes', 'wrong type', '$.episodes[2]'],
    ['episodes.mood', 'unknown field', '$.episodes[1].mood'],
    ['episodes.tags', 'bad format', '$.episodes[3].tags'],
    ['episodes.tags', 'wrong type', '$.episodes[1].tags'],
    ['episodes.timestamp', 'bad format', '$.episodes[0].timestamp'],
    ['episodes.timestamp', 'missing', '$.episodes[3].timestamp'],
  ]);
  const [stored] = await warehouse.readDocuments('rest_mode_period', 'true');
  expect(normalise(stored!.document)).toEqual(normalise(strange));
  expect(await store(warehouse, 'rest_mode_period', [strange])).toMatchObject({ unchanged: 1 });
  await warehouse.close();
});

test('what is no array is null, and whole in extra', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  await store(warehouse, 'rest_mode_period', [{ ...REST, episodes: { tags: [] } }]);
  expect(await warehouse.read('SELECT episodes_count, extra::VARCHAR FROM rest_mode_period')).toEqual([[null, '{"episodes":{"tags":[]}}']]);
  expect(await drift(warehouse)).toEqual([['rest_mode_period', 'episodes', 'wrong type', 1]]);
  await warehouse.close();
});

test('a document without the day that its kind has is rejected, and its reason names the field', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  await store(warehouse, 'enhanced_tag', [{ ...TAG, start_day: undefined, day: '2025-03-09' }]);
  await store(warehouse, 'enhanced_tag', [{ ...TAG, id: '', comment: 'x' }]);
  expect(await warehouse.read('SELECT reason, day FROM sync.rejected ORDER BY reason')).toEqual([
    ['id is missing or no text', '2025-03-09'],
    ['start_day is missing or not a calendar day', null],
  ]);
  expect(await rejected(warehouse)).toHaveLength(2);
  await warehouse.close();
});

test('the objects of an array hold leaves alone', () => {
  const declare = (item: z.ZodObject) =>
    mapResource(
      resource({
        path: 'trip',
        dataType: 'trip',
        summary: 'For a test.',
        scope: 'daily',
        specified: [],
        endDay: 'included',
        document: z.object({ id: identifier('Identifier'), day: day('Day'), legs: objects('Legs', item) }),
      }),
    );
  expect(declare(z.object({ by: text('By'), at: z.object({ place: text('Place') }) })).lists[0]!.columns.map(({ name }) => name)).toEqual([
    'by',
    'at_place',
  ]);
  expect(() => declare(z.object({ stops: objects('Stops', z.object({ place: text('Place') })) }))).toThrow(
    'trip_legs: the objects of an array hold neither samples nor arrays of objects',
  );
  expect(() => declare(z.object({ speed: sample('Speed', 'm/s') }))).toThrow('trip_legs: the objects of an array hold neither samples');
  expect(() => declare(z.object({ position: text('Position') }))).toThrow('trip_legs: two fields would lie in the column position');
});
