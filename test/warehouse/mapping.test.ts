import { expect, test } from 'vitest';
import { z } from 'zod';
import { day, identifier, instant, integer, sample, text } from '../../schema/fields.ts';
import { resources } from '../../schema/index.ts';
import { resource } from '../../schema/resource.ts';
import { mapResource } from '../../src/warehouse/mapping.ts';
import { listTables } from '../../src/warehouse/tables.ts';
import { SPECIFIED } from '../support/declared.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse } from '../support/warehouse.ts';

const folder = tempFolder();

const fabricated = (shape: z.ZodRawShape) =>
  mapResource(
    resource({
      path: 'fabricated',
      dataType: 'fabricated',
      paragraph: '9.9',
      summary: 'For a test.',
      scope: 'daily',
      specified: ['collection'],
      endDay: 'included',
      document: z.object({ id: identifier('Identifier'), day: day('Day'), ...shape }),
    }),
  );

test('every table is named as the specification’s words in lower case, a series after its field', () => {
  expect(listTables(SPECIFIED.map(mapResource)).map(({ name }) => name)).toEqual([
    'daily_readiness',
    'daily_sleep',
    'daily_activity',
    'daily_activity_met',
    'daily_spo2',
    'vo2_max',
    'ring_configuration',
    'daily_resilience',
    'sleep_time',
    'daily_stress',
    'sleep',
    'sleep_heart_rate',
    'sleep_hrv',
    'session',
    'session_heart_rate',
    'session_heart_rate_variability',
    'session_motion_count',
    'heart_rate',
    'participants',
    'sync.runs',
    'sync.windows',
    'sync.events',
    'sync.missed_events',
    'sync.subscriptions',
    'sync.rejected',
    'sync.tombstones',
    'sync.suspicions',
    'sync.drift',
    'sync.routes',
    'sync.accounts',
    'sync.consents',
    'sync.links',
    'sync.meta',
  ]);
});

test('the columns of the tables that others rely on are those of INTERFACES', () => {
  const tables = new Map(listTables(resources.map(mapResource)).map(({ name, columns }) => [name, columns.map(column => column.name)]));
  expect(tables.get('daily_stress')).toEqual([
    'user_id',
    'id',
    'day',
    'day_summary',
    'recovery_high',
    'stress_high',
    'extra',
    'sk',
    'fetched_at',
    'content_hash',
  ]);
  expect(tables.get('ring_configuration')).toEqual([
    'user_id',
    'id',
    'color',
    'design',
    'firmware_version',
    'hardware_type',
    'set_up_at',
    'set_up_at_offset',
    'size',
    'extra',
    'sk',
    'fetched_at',
    'content_hash',
  ]);
  const series = [...tables].filter(([name]) => /_(met|hrv|heart_rate_variability|motion_count)$|^(sleep|session)_heart_rate$/.test(name));
  expect(series.map(([name]) => name)).toHaveLength(6);
  for (const [, columns] of series) expect(columns).toEqual(['sk', 'user_id', 'day', 'ts', 'utc_offset', 'value']);
  expect(tables.get('heart_rate')).toEqual(['user_id', 'ts', 'utc_offset', 'bpm', 'source', 'fetched_at']);
  expect(tables.get('sync.runs')).toEqual(expect.arrayContaining(['run_id', 'kind', 'started_at', 'ended_at', 'state']));
  expect(tables.get('sync.windows')).toEqual([
    'run_id',
    'user_id',
    'collection',
    'start_at',
    'end_at',
    'requested_at',
    'read_at',
    'service_at',
    'route',
    'committed_at',
    'requests',
    'documents',
    'removed',
    'outcome',
    'reason',
    'rows_by_day',
    'pages',
    'rejected',
    'rejected_undated',
  ]);
  expect(tables.get('sync.rejected')).toEqual([
    'user_id',
    'collection',
    'id',
    'reason',
    'document',
    'fetched_at',
    'day',
    'start_at',
    'end_at',
  ]);
  expect(tables.get('sync.tombstones')).toEqual(['user_id', 'collection', 'id', 'removed_at']);
  expect(tables.get('sync.routes')).toEqual(['route', 'last_status', 'last_200_at', 'service', 'doubtful_since']);
  expect(tables.get('sync.accounts')).toEqual(['user_id', 'service_user_id', 'state', 'reason', 'since']);
  expect(tables.get('sync.meta')).toEqual(['key', 'value']);
});

test('the columns of daily_resilience, as they lie in the file, with their types and comments', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const columns = await warehouse.read(
    `SELECT column_name, data_type, comment FROM duckdb_columns() WHERE table_name = 'daily_resilience' ORDER BY column_index`,
  );
  expect(columns).toEqual([
    ['user_id', 'VARCHAR', 'The account, as named by `account add`'],
    ['id', 'VARCHAR', 'Identifier of the document'],
    ['day', 'DATE', 'Day the resilience belongs to'],
    ['contributors_sleep_recovery', 'DOUBLE', 'Contribution of recovery by sleep to the resilience [score, 0 to 100]'],
    ['contributors_daytime_recovery', 'DOUBLE', 'Contribution of recovery by day to the resilience [score, 0 to 100]'],
    ['contributors_stress', 'DOUBLE', 'Contribution of stress to the resilience [score, 0 to 100]'],
    ['level', 'VARCHAR', 'Resilience level'],
    ['extra', 'JSON', 'Fields that came but have no column, or did not fit their column'],
    ['sk', 'BIGINT', 'Number of this stored version; joins the series tables'],
    ['fetched_at', 'TIMESTAMP', 'When the request that brought this version was sent, UTC'],
    ['content_hash', 'VARCHAR', 'Hash of what arrived'],
  ]);
  await warehouse.close();
});

test('every column and every table of the file has a comment', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  expect(await warehouse.read(`SELECT table_name FROM duckdb_tables() WHERE NOT internal AND coalesce(comment, '') = ''`)).toEqual([]);
  expect(
    await warehouse.read(
      `SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal AND database_name = current_database() AND coalesce(comment, '') = ''`,
    ),
  ).toEqual([]);
  await warehouse.close();
});

test('no table has a key, a constraint, an index or a default', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  expect(await warehouse.read(`SELECT table_name FROM duckdb_constraints()`)).toEqual([]);
  expect(await warehouse.read(`SELECT table_name FROM duckdb_indexes()`)).toEqual([]);
  expect(await warehouse.read(`SELECT table_name FROM duckdb_columns() WHERE NOT internal AND column_default IS NOT NULL`)).toEqual([]);
  await warehouse.close();
});

test('all document types map, each with its own columns only', () => {
  for (const declared of resources) {
    const names = mapResource(declared).columns.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toContain('id');
    expect(names.includes(declared.dayField)).toBe(declared.dated);
  }
});

test.each([
  ['two paths that join to one name', { sleep_score: integer('A'), sleep: z.object({ score: integer('B') }) }, 'sleep_score'],
  ['an instant and a field of its offset', { woken: instant('A'), woken_offset: integer('B') }, 'woken_offset'],
  ['a sample and a field of its count', { pulse_count: integer('A'), pulse: sample('B', 'beats') }, 'pulse_count'],
  ['a field named sk', { sk: integer('A') }, 'sk'],
  ['a field named user_id', { user_id: text('A') }, 'user_id'],
  ['a field named extra', { extra: text('A') }, 'extra'],
  ['a field named fetched_at', { fetched_at: instant('A') }, 'fetched_at'],
  ['a path that joins to content_hash', { content: z.object({ hash: text('A') }) }, 'content_hash'],
])('%s cannot be stored', (_, shape, column) => {
  expect(() => fabricated(shape as z.ZodRawShape)).toThrow(`fabricated: two fields would lie in the column ${column}`);
});

test('a field that no function of the schema made cannot be stored', () => {
  expect(() => fabricated({ bare: z.string() })).toThrow('fabricated: the field bare is made by no function of schema/fields.ts');
});
