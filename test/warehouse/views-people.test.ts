import { afterAll, beforeAll, expect, test } from 'vitest';
import { addDays } from '../../schema/instant.ts';
import { createPeople } from '../../src/simulator/users/people.ts';
import type { Warehouse } from '../../src/warehouse/warehouse.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse, rows, store } from '../support/warehouse.ts';

// The views against what the documents themselves say, over two months of somebody who flies: on 4 August 2025 from New York to
// Kathmandu, 9 hours and 45 minutes east, and on 10 August back.

const folder = tempFolder();
const [FIRST, LAST] = ['2025-07-15', '2025-09-15'];
let warehouse: Warehouse;

beforeAll(async () => {
  warehouse = await openWarehouse(newPath(folder));
  const people = createPeople({ seed: 7, count: 2, from: FIRST, to: LAST });
  const { userId } = people.persons[1]!;
  for (const resource of ['sleep', 'daily_sleep', 'daily_activity', 'daily_stress', 'daily_readiness']) {
    const documents = [];
    for (let day = FIRST; day <= LAST; day = addDays(day, 1)) documents.push(...people.documents(userId, resource, day));
    await store(warehouse, resource, documents);
  }
});

afterAll(() => warehouse.close());

const count = async (sql: string) => ((await rows(warehouse, `SELECT count(*) AS n FROM (${sql})`)) as [{ n: number }])[0].n;

test('the stages of each night add up to its durations, and all of them to the time in bed', async () => {
  const sums = `SELECT sleep_id,
      sum(seconds) FILTER (WHERE stage = 'deep') AS deep, sum(seconds) FILTER (WHERE stage = 'light') AS light,
      sum(seconds) FILTER (WHERE stage = 'rem') AS rem, sum(seconds) FILTER (WHERE stage = 'awake') AS awake, sum(seconds) AS total
    FROM %view GROUP BY sleep_id`;
  for (const view of ['sleep_stages', 'sleep_stage_spans']) {
    // Those of 5 minutes are coarser.
    const nights = `SELECT s.* FROM nights n JOIN sleep s USING (user_id, day, sk) WHERE s.sleep_phase_30_sec IS NOT NULL`;
    const joined = `SELECT * FROM (${nights}) n JOIN (${sums.replace('%view', view)}) s ON s.sleep_id = n.id`;
    expect(await count(joined)).toBeGreaterThan(50);
    expect(
      await count(`${joined} WHERE (deep, light, rem, awake, total) IS DISTINCT FROM
        (deep_sleep_duration, light_sleep_duration, rem_sleep_duration, awake_time, time_in_bed)`),
    ).toBe(0);
  }
});

test('every counted sleep belongs to the day that its end has by night_of', async () => {
  expect(await count('SELECT * FROM counted_sleeps')).toBeGreaterThan(55);
  expect(await count('SELECT * FROM counted_sleeps WHERE day <> night_of(bedtime_end, bedtime_end_offset)')).toBe(0);
});

test('nights never overlap, and none is lost: a long_sleep of each day that has one', async () => {
  expect(
    await count(
      'SELECT * FROM (SELECT bedtime_start, lag(bedtime_end) OVER (ORDER BY bedtime_start) AS before FROM nights) WHERE before > bedtime_start',
    ),
  ).toBe(0);
  expect(await count(`SELECT day FROM sleep WHERE type = 'long_sleep' EXCEPT SELECT day FROM nights`)).toBe(0);
  expect(await count('SELECT day FROM nights GROUP BY day HAVING count(*) > 1')).toBe(0);
});

test('classes and minutes add up to what the activity says, on days of flights too', async () => {
  const sums = `SELECT day, sum(seconds) FILTER (WHERE class = 'high') AS high, sum(seconds) FILTER (WHERE class = 'medium') AS medium,
    sum(seconds) FILTER (WHERE class = 'non_wear') AS off, sum(seconds) AS total FROM activity_classes GROUP BY day`;
  const joined = `SELECT * FROM daily JOIN (${sums}) s USING (day)`;
  expect(await count(joined)).toBeGreaterThan(55);
  expect(
    await count(`${joined} WHERE (coalesce(high, 0), coalesce(medium, 0), coalesce(off, 0), total) <>
      (high_activity_time, medium_activity_time, non_wear_time, recorded_time)`),
  ).toBe(0);
  expect(await count('SELECT day FROM daily WHERE recorded_time <> 86400')).toBe(0);
  // 4 a.m. in Kathmandu came 9 hours and 45 minutes, 35100 s, sooner: what the flight's activity tells after it is that of the next day.
  const short = 'SELECT day, sum(seconds)::BIGINT AS seconds FROM met_minutes GROUP BY day HAVING sum(seconds) <> 86400';
  expect(await rows(warehouse, short)).toEqual([{ day: '2025-08-04', seconds: 51300 }]);
});

test('no minute of activity is there twice, and none is missing but after the flight home, which makes a day longer than 24 hours', async () => {
  expect(await count('SELECT ts FROM met_minutes GROUP BY ts HAVING count(*) > 1')).toBe(0);
  const whole = "SELECT count(*) AS minutes, date_diff('minute', min(ts), max(ts)) + 1 AS between_them FROM met_minutes";
  // 9 hours and 45 minutes.
  expect(await count(`SELECT * FROM (${whole}) WHERE minutes = between_them - 585`)).toBe(1);
});

test('activity_day_of gives the day of the document', async () => {
  const others = `SELECT DISTINCT day FROM met_minutes WHERE day <> activity_day_of(ts, utc_offset) ORDER BY day`;
  expect(await rows(warehouse, others)).toEqual([]);
});

test('the mean of the samples is the average that the night says', async () => {
  expect(await count('SELECT * FROM hrv_nights WHERE samples_with_value > 0')).toBeGreaterThan(50);
  expect(await count('SELECT * FROM hrv_nights WHERE samples_with_value > 0 AND abs(mean_hrv - average_hrv) > 0.5001')).toBe(0);
});

test('each day has one row in daily, and each of its weeks one in weekly', async () => {
  // 15 July to 15 September: 17 + 31 + 15 days.
  expect(await count('SELECT DISTINCT day FROM daily')).toBe(63);
  expect(await count('SELECT * FROM daily')).toBe(63);
  expect(
    await rows(warehouse, 'SELECT sum(days)::BIGINT AS days, count(*) AS weeks, min(week) AS first, max(week) AS last FROM weekly'),
  ).toEqual([{ days: 63, weeks: 10, first: '2025-07-14', last: '2025-09-15' }]);
});
