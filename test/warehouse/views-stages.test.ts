import { describe, expect, test } from 'vitest';
import { rows, store } from '../support/warehouse.ts';
import { ACTIVITY } from '../support/wire.ts';
import { emptiedWarehouse } from './views-setup.ts';

const warehouse = await emptiedWarehouse();

describe('stages and movement', () => {
  const sleep = {
    id: 's',
    day: '2025-03-11',
    type: 'long_sleep',
    bedtime_start: '2025-03-11T00:00:00+01:00',
    bedtime_end: '2025-03-11T00:03:20+01:00',
    sleep_phase_5_min: '1',
    sleep_phase_30_sec: '4421197',
    movement_30_sec: '1234905',
  };
  const head = { user_id: 'ann', day: '2025-03-11', sleep_id: 's', utc_offset: 3600, step: 30 };

  test('are rows of 30 seconds, the last one as long as the sleep, what is unknown without a label', async () => {
    await store(warehouse, 'sleep', [sleep, { ...sleep, id: 'x', type: 'deleted' }, { ...sleep, id: 'y', type: 'rest' }]);
    expect(await rows(warehouse, 'SELECT * FROM sleep_stages ORDER BY ts')).toEqual([
      { ...head, position: 0, ts: '2025-03-10 23:00:00', seconds: 30, stage: 'awake', code: '4' },
      { ...head, position: 1, ts: '2025-03-10 23:00:30', seconds: 30, stage: 'awake', code: '4' },
      { ...head, position: 2, ts: '2025-03-10 23:01:00', seconds: 30, stage: 'light', code: '2' },
      { ...head, position: 3, ts: '2025-03-10 23:01:30', seconds: 30, stage: 'deep', code: '1' },
      { ...head, position: 4, ts: '2025-03-10 23:02:00', seconds: 30, stage: 'deep', code: '1' },
      { ...head, position: 5, ts: '2025-03-10 23:02:30', seconds: 30, stage: null, code: '9' },
      { ...head, position: 6, ts: '2025-03-10 23:03:00', seconds: 20, stage: null, code: '7' },
    ]);
    expect(await rows(warehouse, 'SELECT ts, seconds, movement, code FROM sleep_movement ORDER BY ts')).toEqual([
      { ts: '2025-03-10 23:00:00', seconds: 30, movement: 'none', code: '1' },
      { ts: '2025-03-10 23:00:30', seconds: 30, movement: 'restless', code: '2' },
      { ts: '2025-03-10 23:01:00', seconds: 30, movement: 'tossing', code: '3' },
      { ts: '2025-03-10 23:01:30', seconds: 30, movement: 'active', code: '4' },
      { ts: '2025-03-10 23:02:00', seconds: 30, movement: null, code: '9' },
      { ts: '2025-03-10 23:02:30', seconds: 30, movement: null, code: '0' },
      { ts: '2025-03-10 23:03:00', seconds: 20, movement: null, code: '5' },
    ]);
  });

  test('neighbours of one stage are one span, from the start of the first to the end of the last', async () => {
    await store(warehouse, 'sleep', [sleep, { ...sleep, id: 'x', type: 'deleted' }]);
    expect(await rows(warehouse, 'SELECT * FROM sleep_stage_spans ORDER BY ts')).toEqual([
      { ...head, span: 1, ts: '2025-03-10 23:00:00', seconds: 60, stage: 'awake', code: '4' },
      { ...head, span: 2, ts: '2025-03-10 23:01:00', seconds: 30, stage: 'light', code: '2' },
      { ...head, span: 3, ts: '2025-03-10 23:01:30', seconds: 60, stage: 'deep', code: '1' },
      { ...head, span: 4, ts: '2025-03-10 23:02:30', seconds: 30, stage: null, code: '9' },
      { ...head, span: 5, ts: '2025-03-10 23:03:00', seconds: 20, stage: null, code: '7' },
    ]);
  });

  test('neighbours of one digit without a label are one span too, other signs are each their own', async () => {
    await store(warehouse, 'sleep', [{ ...sleep, sleep_phase_30_sec: '100977x' }]);
    expect(await rows(warehouse, 'SELECT span, ts, seconds, stage, code FROM sleep_stage_spans ORDER BY span')).toEqual([
      { span: 1, ts: '2025-03-10 23:00:00', seconds: 30, stage: 'deep', code: '1' },
      { span: 2, ts: '2025-03-10 23:00:30', seconds: 60, stage: null, code: '0' },
      { span: 3, ts: '2025-03-10 23:01:30', seconds: 30, stage: null, code: '9' },
      { span: 4, ts: '2025-03-10 23:02:00', seconds: 60, stage: null, code: '7' },
      { span: 5, ts: '2025-03-10 23:03:00', seconds: 20, stage: null, code: 'x' },
    ]);
  });

  test('come in 5 minutes where those of 30 seconds are missing; none at all are no rows', async () => {
    await store(warehouse, 'sleep', [
      { ...sleep, sleep_phase_30_sec: null, sleep_phase_5_min: '33', bedtime_end: '2025-03-11T00:09:00+01:00' },
      { ...sleep, id: 'none', sleep_phase_30_sec: null, sleep_phase_5_min: null, movement_30_sec: null },
      { ...sleep, id: 'empty', sleep_phase_30_sec: '', sleep_phase_5_min: '', movement_30_sec: '' },
    ]);
    expect(await rows(warehouse, 'SELECT sleep_id, ts, seconds, stage, step FROM sleep_stages ORDER BY ts')).toEqual([
      { sleep_id: 's', ts: '2025-03-10 23:00:00', seconds: 300, stage: 'rem', step: 300 },
      { sleep_id: 's', ts: '2025-03-10 23:05:00', seconds: 240, stage: 'rem', step: 300 },
    ]);
    expect(await rows(warehouse, 'SELECT sleep_id, ts, seconds, stage, step FROM sleep_stage_spans')).toEqual([
      { sleep_id: 's', ts: '2025-03-10 23:00:00', seconds: 540, stage: 'rem', step: 300 },
    ]);
    expect(await rows(warehouse, 'SELECT DISTINCT sleep_id FROM sleep_movement')).toEqual([{ sleep_id: 's' }]);
    await store(warehouse, 'daily_activity', [{ ...ACTIVITY, class_5_min: '' }]);
    expect(await rows(warehouse, 'SELECT code FROM activity_classes')).toEqual([]);
  });

  test('a sleep with digits of both lengths is told in those of 30 seconds alone, and each sleep says which it has', async () => {
    const [start, end] = ['2025-03-11T00:00:00+00:00', '2025-03-11T00:10:00+00:00'];
    const long = { ...sleep, bedtime_start: start, bedtime_end: end, sleep_phase_5_min: '12' };
    await store(warehouse, 'sleep', [
      { ...long, id: 'both', sleep_phase_30_sec: '1'.repeat(9) + '2'.repeat(11) },
      { ...long, id: 'coarse', sleep_phase_30_sec: null },
    ]);
    expect(
      await rows(
        warehouse,
        'SELECT sleep_id, step, list(seconds ORDER BY span) AS seconds FROM sleep_stage_spans GROUP BY ALL ORDER BY ALL',
      ),
    ).toEqual([
      { sleep_id: 'both', step: 30, seconds: [270, 330] },
      { sleep_id: 'coarse', step: 300, seconds: [300, 300] },
    ]);
  });

  test('a string that is longer than the sleep keeps its rows, without a length', async () => {
    await store(warehouse, 'sleep', [{ ...sleep, bedtime_end: '2025-03-11T00:01:10+01:00', sleep_phase_30_sec: '44221' }]);
    expect(await rows(warehouse, 'SELECT position, seconds, stage FROM sleep_stages ORDER BY position')).toEqual([
      { position: 0, seconds: 30, stage: 'awake' },
      { position: 1, seconds: 30, stage: 'awake' },
      { position: 2, seconds: 10, stage: 'light' },
      { position: 3, seconds: 0, stage: 'light' },
      { position: 4, seconds: 0, stage: 'deep' },
    ]);
    expect(await rows(warehouse, 'SELECT span, seconds, stage FROM sleep_stage_spans ORDER BY span')).toEqual([
      { span: 1, seconds: 60, stage: 'awake' },
      { span: 2, seconds: 10, stage: 'light' },
      { span: 3, seconds: 0, stage: 'deep' },
    ]);
  });

  test('where the end is not known every row is as long as its string says', async () => {
    await store(warehouse, 'sleep', [{ ...sleep, bedtime_end: null, sleep_phase_30_sec: '442', movement_30_sec: '1' }]);
    expect(await rows(warehouse, 'SELECT position, seconds, stage FROM sleep_stages ORDER BY position')).toEqual([
      { position: 0, seconds: 30, stage: 'awake' },
      { position: 1, seconds: 30, stage: 'awake' },
      { position: 2, seconds: 30, stage: 'light' },
    ]);
    expect(await rows(warehouse, 'SELECT span, seconds, stage FROM sleep_stage_spans ORDER BY span')).toEqual([
      { span: 1, seconds: 60, stage: 'awake' },
      { span: 2, seconds: 30, stage: 'light' },
    ]);
    expect(await rows(warehouse, 'SELECT position, seconds FROM sleep_movement')).toEqual([{ position: 0, seconds: 30 }]);
  });
});
