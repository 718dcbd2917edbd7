import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { enterConsole, type Looking } from '../../support/console-page.ts';
import { axisOf, type DrawnPoint, pointsOf, someOfMany } from '../../support/drawn-points.ts';
import { rowsOf, withDuckDB } from '../../support/warehouse.ts';
import { someOf } from '../../support/whole.ts';
import { NOW, placeGenerated } from '../generated-people.ts';

// What the page shows, against questions of their own to the tables of documents and samples: neither the views nor the API are asked.

let data: string;
beforeAll(async () => {
  data = hasChromium ? await placeGenerated() : '';
});

type Row = Record<string, number | string | null>;
const ask = (sql: string) =>
  withDuckDB(join(data, 'warehouse.duckdb'), connection => rowsOf(connection, sql), { access_mode: 'READ_ONLY' }) as Promise<Row[]>;
const one = async (sql: string): Promise<Row> => (await ask(sql))[0] ?? {};
const column = async (sql: string, name: string) => (await ask(sql)).map(row => row[name]);

async function look(): Promise<Looking> {
  const served = await openConsoleHere(data, { now: () => NOW });
  return enterConsole(await openChromium(), served);
}

const attributes = (page: Page, selector: string, ...names: string[]): Promise<(string | null)[][]> =>
  page.locator(selector).evaluateAll((elements, of) => elements.map(element => of.map(name => element.getAttribute(name))), names);
const numbers = async (page: Page, selector: string, name: string) =>
  (await attributes(page, selector, name)).map(([text]) => Number(text));

/** The longest long sleep of each day. */
const NIGHTS = `SELECT * FROM sleep WHERE type = 'long_sleep' QUALIFY row_number() OVER (PARTITION BY user_id, day ORDER BY total_sleep_duration DESC) = 1`;
const nightOf = (user: string, day: string) => `(FROM (${NIGHTS}) WHERE user_id = '${user}' AND day = '${day}')`;

/** Where the points of a series are drawn, against their labels: within half a pixel. */
async function expectInPlace(
  page: Page,
  selector: string,
  points: readonly DrawnPoint[],
  keys: { labels: string; name: string; toNumber?: (text: string) => number },
) {
  const toKey = await axisOf(page, keys.labels, { along: 'x', name: keys.name, ...(keys.toNumber && { toNumber: keys.toNumber }) });
  // A label stands 4 below the line of its value.
  const toValue = await axisOf(page, `${selector} text[data-value]`, { along: 'y', name: 'data-value', shift: 4 });
  const [perX, perY] = [Math.abs(toKey(1) - toKey(0)), Math.abs(toValue(1) - toValue(0))];
  const toNumber = keys.toNumber ?? Number;
  const chosen = someOfMany(points);
  expect(chosen.length).toBeGreaterThan(9);
  for (const { x, y, key, value } of chosen) {
    expect(Math.abs(toKey(x) - toNumber(key)), `${selector} ${key} across`).toBeLessThan(perX / 2);
    expect(Math.abs(toValue(y) - value), `${selector} ${key} up`).toBeLessThan(perY / 2);
  }
}

type Sleep = readonly [user: string, day: string];
const CLOCK_CHANGE: Sleep = ['ada', '2025-10-26'];
const FLIGHT: Sleep = ['ben', '2025-08-05'];
const SLEEPS: readonly Sleep[] = [CLOCK_CHANGE, ['ada', '2025-10-14'], FLIGHT, ['ben', '2025-08-08']];

test.skipIf(!hasChromium)('nights: lanes are the digits, gaps the samples without a value, points where they belong', async () => {
  const { page, complaints, open } = await look();
  for (const [user, day] of someOf(SLEEPS, { always: [CLOCK_CHANGE, FLIGHT], more: 0 })) {
    await open(`/people/${user}?day=${day}`);
    const night = nightOf(user, day);
    const counted = ['4', '3', '2', '1'].map(
      digit => `30 * len(regexp_replace(sleep_phase_30_sec, '[^${digit}]', '', 'g')) AS "d${digit}"`,
    );
    const { d4, d3, d2, d1 } = await one(`SELECT ${counted} FROM ${night}`);
    expect(await attributes(page, '.lanes [data-total]', 'data-total', 'data-seconds'), `${user} ${day}`).toEqual(
      Object.entries({ awake: d4, rem: d3, light: d2, deep: d1 }).map(([stage, seconds]) => [stage, String(seconds)]),
    );
    for (const [name, table] of [
      ['heart_rate', 'sleep_heart_rate'],
      ['hrv', 'sleep_hrv'],
    ] as const) {
      const samples = await ask(
        `SELECT epoch(s.ts)::BIGINT AS at, s.value FROM ${table} s JOIN ${night} n USING (user_id, sk) ORDER BY s.ts`,
      );
      const points = await pointsOf(page, `.night .${name}`);
      expect(points.map(({ key, value }) => [Number(key), value])).toEqual(
        samples.filter(({ value }) => value !== null).map(({ at, value }) => [at, value]),
      );
      const { start, end } = await one(`SELECT epoch(bedtime_start)::BIGINT AS start, epoch(bedtime_end)::BIGINT AS end FROM ${night}`);
      expect(await numbers(page, `.night .${name} .gap`, 'data-start')).toEqual(gapsBetween(samples, Number(start), Number(end)));
      await expectInPlace(page, `.night .${name}`, points, { labels: '.night [data-offset] >> nth=0 >> [data-at]', name: 'data-at' });
    }
    const { lowest, mean, before, after } = await one(
      `SELECT (SELECT min(value) FROM sleep_heart_rate WHERE sk = n.sk) AS lowest, average_hrv AS mean, bedtime_start_offset AS before, bedtime_end_offset AS after FROM ${night} n`,
    );
    expect(await numbers(page, '.night .lowest', 'data-lowest')).toEqual([lowest]);
    expect(await numbers(page, '.night .mean', 'data-mean')).toEqual([mean]);
    expect(await numbers(page, '.night [data-offset]', 'data-offset')).toEqual(before === after ? [before] : [before, after]);
    // Digits 1 to 4 are none to much: ten of them are a bar.
    const bars = await column(
      `SELECT list_avg([ascii(d) - 49 FOR d IN string_split(substr(movement_30_sec, 1 + 10 * i, 10), '')]) / 3 AS moved
       FROM ${night}, range(0, 1000) AS bars(i) WHERE 10 * i < len(movement_30_sec) ORDER BY i`,
      'moved',
    );
    const moved = await numbers(page, '.night .moved', 'data-value');
    expect(moved.length).toBe(bars.length);
    for (const [index, value] of moved.entries()) expect(value).toBeCloseTo(Number(bars[index]), 9);
  }
  expect(complaints).toEqual([]);
});

/** Starts of ten minutes and more without a value, from the bedtime to the end. */
function gapsBetween(samples: readonly Row[], start: number, end: number): number[] {
  const known = samples.filter(({ value }) => value !== null).map(({ at }) => Number(at));
  const edges = [start, ...known.map(at => at + 300)];
  return edges.filter((edge, index) => (known[index] ?? end) - edge >= 600);
}

/** The metrics of a day, and the least spread that is believed of each. */
const METRICS = {
  average_hrv: [NIGHTS, 'average_hrv', '0.02 * abs(middle)'],
  lowest_heart_rate: [NIGHTS, 'lowest_heart_rate', '1'],
  average_heart_rate: [NIGHTS, 'average_heart_rate', '0'],
  average_breath: [NIGHTS, 'average_breath', '0.125'],
  total_sleep_duration: [NIGHTS, 'total_sleep_duration', '0'],
  efficiency: [NIGHTS, 'efficiency', '0'],
  deep_sleep_duration: [NIGHTS, 'deep_sleep_duration', '0'],
  rem_sleep_duration: [NIGHTS, 'rem_sleep_duration', '0'],
  temperature_deviation: ['FROM daily_readiness', 'temperature_deviation', '0.1'],
  spo2_average: ['FROM daily_spo2', 'spo2_percentage_average', '0'],
  sleep_score: ['FROM daily_sleep', 'score', '0'],
  readiness_score: ['FROM daily_readiness', 'score', '0'],
} as const;

/** Of each day of a range its value and what was usual in the 28 days before it, where these have 14 values. */
function usualOf(user: string, metric: keyof typeof METRICS, from: string, to: string): Promise<Row[]> {
  const [source, name, least] = METRICS[metric];
  return ask(`
    WITH days AS (SELECT day, ${name}::DOUBLE AS value FROM (${source}) WHERE user_id = '${user}' AND ${name} IS NOT NULL),
    told AS (
      SELECT d.day, d.value, list(b.value) AS others, median(b.value) AS middle
      FROM days d LEFT JOIN days b ON b.day BETWEEN d.day - 28 AND d.day - 1 GROUP BY ALL
    ),
    spread AS (FROM told SELECT *, CASE WHEN len(others) >= 14 THEN 1.4826 * list_median([abs(v - middle) FOR v IN others]) END AS band)
    SELECT day::VARCHAR AS day, value, CASE WHEN band IS NOT NULL THEN middle END AS middle, band,
      (value - middle) / nullif(greatest(band, CASE WHEN band IS NOT NULL THEN ${least} END), 0) AS z
    FROM spread WHERE day BETWEEN '${from}' AND '${to}' ORDER BY day`);
}

test.skipIf(!hasChromium)('what is usual is recomputed: values, z, bands and diamonds of each metric and day', async () => {
  const { page, complaints, open } = await look();
  const ada = ['ada', '2025-10-26', '2025-07-30', '2025-10-27'] as const;
  const ben = ['ben', '2025-08-08', '2025-05-17', '2025-08-14'] as const;
  for (const [user, day, from, to] of someOf([ada, ben], { always: [ada], more: 0 })) {
    await open(`/people/${user}?day=${day}`);
    for (const metric of Object.keys(METRICS) as (keyof typeof METRICS)[]) {
      const [{ value = null, z = null } = {}] = await usualOf(user, metric, day, day);
      const row = page.locator(`tr[data-metric=${metric}]`);
      if (value === null) expect(await row.textContent(), metric).toContain('none');
      else if (typeof z === 'number') {
        expect(Number(await row.locator('[data-z]').getAttribute('data-z')), `${user} ${metric}`).toBeCloseTo(z, 6);
        expect(await row.locator('path[data-z]').count(), `${user} ${metric}`).toBe(Math.abs(z) >= 2 ? 1 : 0);
      }
    }
    for (const metric of [
      'average_hrv',
      'lowest_heart_rate',
      'temperature_deviation',
      'total_sleep_duration',
      'average_breath',
      'sleep_score',
    ] as const) {
      await expectTrend(page, metric, await usualOf(user, metric, from, to), { from, to });
    }
  }
  expect(complaints).toEqual([]);
});

/** Of a temperature alone there are values below 0; a score ends at 100. */
const within = (metric: string, [low, high]: [number, number]) => [
  metric === 'temperature_deviation' ? low : Math.max(0, low),
  metric === 'sleep_score' ? Math.min(100, high) : high,
];

const dayNumber = (day: string) => Date.parse(`${day}T00:00:00Z`) / 86_400_000;

async function expectTrend(
  page: Page,
  metric: string,
  expected: readonly Row[],
  { from, to }: { from: string; to: string },
): Promise<void> {
  const chart = `figure:has(option[value=${metric}]:checked) svg.trend`;
  const points = await pointsOf(page, chart);
  expect(
    points.map(({ key, value }) => [key, value]),
    metric,
  ).toEqual(expected.map(({ day, value }) => [day, value]));
  expect(await numbers(page, `${chart} [data-day].unusual-mark`, 'data-z'), metric).toEqual(
    expected.flatMap(({ z }) => (typeof z === 'number' && Math.abs(z) >= 2 ? [expect.closeTo(z, 6)] : [])),
  );
  const known = expected.map(({ day }) => day);
  const all = Array.from({ length: dayNumber(to) - dayNumber(from) + 1 }, (_, n) =>
    new Date((dayNumber(from) + n) * 86_400_000).toISOString().slice(0, 10),
  );
  expect((await attributes(page, `${chart} [data-none]`, 'data-none')).flat(), metric).toEqual(all.filter(day => !known.includes(day)));
  await expectInPlace(page, chart, points, { labels: `${chart} text[data-day]`, name: 'data-day', toNumber: dayNumber });
  // A band is drawn along its upper edge and back along the lower one.
  const toValue = await axisOf(page, `${chart} text[data-value]`, { along: 'y', name: 'data-value', shift: 4 });
  const edges = (await attributes(page, `${chart} .band-area`, 'd')).flatMap(([d]) => {
    const heights = [...(d ?? '').matchAll(/[ML,\dZ.-]*?[\d.]+,([\d.]+)/g)].map(([, y]) => toValue(Number(y)));
    return heights.slice(0, heights.length / 2).map((high, n) => [heights[heights.length - 1 - n] ?? Number.NaN, high]);
  });
  const perPixel = Math.abs(toValue(1) - toValue(0));
  const bands = expected.flatMap(({ middle, band }) =>
    typeof middle === 'number' && typeof band === 'number' ? [within(metric, [middle - band, middle + band])] : [],
  );
  expect(edges.length, metric).toBeGreaterThanOrEqual(bands.length);
  for (const [low = 0, high = 0] of someOfMany(bands)) {
    expect(
      edges.some(([one = 0, other = 0]) => Math.abs(one - low) < perPixel && Math.abs(other - high) < perPixel),
      `${metric} ${low}–${high}`,
    ).toBe(true);
  }
}

/** Five minutes of all that measured the heart: a sample of a sleep or session counts where nothing else was measured in its time. */
const heartOf = (user: string, from: string, to: string) => `
  WITH measured AS (SELECT ts, max_by(bpm, source)::DOUBLE AS bpm FROM heart_rate WHERE user_id = '${user}' GROUP BY ts),
  samples AS (
    SELECT s.ts, s.value, d.heart_rate_interval AS lasts, s.sk FROM sleep_heart_rate s JOIN sleep d USING (user_id, sk) WHERE s.user_id = '${user}'
    UNION ALL
    SELECT s.ts, s.value, d.heart_rate_interval, s.sk FROM session_heart_rate s JOIN session d USING (user_id, sk) WHERE s.user_id = '${user}'
  ),
  alone AS (
    SELECT ts, max_by(value, sk) AS bpm FROM samples
    WHERE value IS NOT NULL AND NOT EXISTS (FROM measured m WHERE m.ts >= samples.ts AND epoch(m.ts) < epoch(samples.ts) + samples.lasts)
    GROUP BY ts
  )
  SELECT epoch(ts)::BIGINT // 300 * 300 AS at, median(bpm) AS median, min(bpm) AS lowest, max(bpm) AS highest
  FROM (FROM measured UNION ALL FROM alone) WHERE ts >= '${from}' AND ts < '${to}' GROUP BY 1 ORDER BY 1`;
/** A minute that two activities tell is that of the one that starts later. */
const metOf = (user: string, from: string, to: string) => `
  SELECT epoch(ts)::BIGINT // 300 * 300 AS at, avg(value) AS met
  FROM (SELECT m.ts, max_by(m.value, a.met_start) AS value FROM daily_activity_met m JOIN daily_activity a USING (user_id, sk) WHERE user_id = '${user}' GROUP BY m.ts)
  WHERE ts >= '${from}' AND ts < '${to}' AND value IS NOT NULL GROUP BY 1 ORDER BY 1`;

test.skipIf(!hasChromium)('a day is drawn as it was measured: of 25 hours, and at UTC+5:45', async () => {
  const { page, complaints, open } = await look();
  for (const [user, day, from, to] of [
    ['ada', '2025-10-26', '2025-10-25 22:00:00', '2025-10-26 23:00:00'],
    ['ben', '2025-08-07', '2025-08-06 18:15:00', '2025-08-07 18:15:00'],
  ] as const) {
    await open(`/people/${user}?day=${day}`);
    const chart = 'figure:has(.mets)';
    const heart = await ask(heartOf(user, from, to));
    const points = await pointsOf(page, `${chart} .heart_rate`);
    expect(
      points.map(({ key, value }) => [Number(key), value]),
      user,
    ).toEqual(heart.map(({ at, median }) => [at, median]));
    // What is drawn of 5 minutes stands in their middle.
    const shifted = points.map(point => ({ ...point, key: String(Number(point.key) + 150) }));
    await expectInPlace(page, `${chart} .heart_rate`, shifted, { labels: `${chart} [data-at]`, name: 'data-at' });
    const extremes = heart.flatMap(({ lowest, highest }) => [Number(lowest), Number(highest)]);
    expect(await page.locator(`${chart} figcaption`).textContent(), user).toContain(
      `Heart rate from ${Math.min(...extremes)} to ${Math.max(...extremes)} beats/min`,
    );
    const mets = await ask(metOf(user, from, to));
    const shown = ((await attributes(page, `${chart} .mets .moved`, 'data-points'))[0]?.[0] ?? '')
      .split(' ')
      .map(pair => pair.split(',').map(Number));
    expect(shown.length, user).toBe(mets.length);
    for (const [n, [at = 0, met = 0]] of shown.entries()) {
      expect(at).toBe(mets[n]?.at);
      expect(met).toBeCloseTo(Number(mets[n]?.met), 9);
    }
    const within = `>= '${from}' AND starts < '${to}'`;
    const events = await ask(`SELECT kind, epoch(starts)::BIGINT AS at FROM (
        SELECT 'workout' AS kind, start_datetime AS starts FROM workout WHERE user_id = '${user}'
        UNION ALL SELECT 'session', start_datetime FROM session WHERE user_id = '${user}'
        UNION ALL SELECT 'tag', start_time FROM enhanced_tag WHERE user_id = '${user}')
      WHERE starts ${within} ORDER BY starts, kind`);
    const drawnEvents = (await attributes(page, `${chart} [data-event]`, 'data-event', 'data-start')).filter(
      ([kind]) => kind !== 'sleep' && kind !== 'rest_mode',
    );
    expect(drawnEvents, user).toEqual(events.map(({ kind, at }) => [kind, String(at)]));
  }
  expect(complaints).toEqual([]);
});

test.skipIf(!hasChromium)('the overview and the raster are made of the nights that are stored', async () => {
  const { page, complaints, open } = await look();
  await open('/');
  const [night = {}] = await ask(`SELECT total_sleep_duration AS asleep FROM ${nightOf('ada', '2025-10-27')}`);
  const asleep = Number(night.asleep);
  expect(await page.locator('tr[data-person=ada] td strong').first().textContent()).toBe(
    `${Math.floor(Math.round(asleep / 60) / 60)} h ${String(Math.round(asleep / 60) % 60).padStart(2, '0')}`,
  );
  const minutes = (name: string) => `(epoch(bedtime_${name}) + bedtime_${name}_offset - epoch(day)) / 60`;
  const bars =
    await ask(`SELECT d::DATE::VARCHAR AS day, "from", "to" FROM range(DATE '2025-10-14', DATE '2025-10-28', INTERVAL 1 DAY) days(d)
    LEFT JOIN (SELECT day, ${minutes('start')} AS "from", ${minutes('end')} AS "to" FROM (${NIGHTS}) WHERE user_id = 'ada') n ON n.day = d ORDER BY d`);
  const [drawnBars = []] = await attributes(page, 'tr[data-person=ada] .night-bars', 'data-start', 'data-end');
  expect(drawnBars).toEqual([bars.map(bar => bar.from ?? '').join(' '), bars.map(bar => bar.to ?? '').join(' ')]);
  for (const [at, metric] of (['average_hrv', 'lowest_heart_rate', 'temperature_deviation'] as const).entries()) {
    const values = new Map((await usualOf('ada', metric, '2025-09-30', '2025-10-27')).map(({ day, value }) => [day, value]));
    const days = Array.from({ length: 28 }, (_, n) => new Date(Date.UTC(2025, 8, 30 + n)).toISOString().slice(0, 10));
    const [spark = []] = (await attributes(page, 'tr[data-person=ada] .sparkline', 'data-values')).slice(at);
    expect(spark[0], metric).toBe(days.map(day => values.get(day) ?? '').join(' '));
  }

  await open('/people/ada/raster');
  const scores = await ask(`SELECT day::VARCHAR AS day, score FROM daily_sleep WHERE user_id = 'ada' ORDER BY day`);
  const days = await page
    .locator('.drawn canvas')
    .nth(1)
    .evaluate(canvas => ('__data__' in canvas ? canvas.__data__ : {}) as { days: Row[] });
  expect(days.days.flatMap(({ day, score }) => (score === null ? [] : [{ day, score }]))).toEqual(scores);
  const { points, colours } = await stagesToFind(page);
  expect(points.length).toBeGreaterThanOrEqual(50);
  expect(await coloursAt(page, points)).toEqual(colours);
  expect(complaints).toEqual([]);
});

const COLOURS: Readonly<Record<string, string>> = { 1: '#1d3b7a', 2: '#6f95d2', 3: '#3c9a8e', 4: '#c9801d' };

/** Pixels in stretches of a stage that are long enough to be seen, and in the right half the same a row above. */
async function stagesToFind(page: Page): Promise<{ points: number[][]; colours: string[] }> {
  const sleeps = await ask(`SELECT day - DATE '2025-09-12' AS row, sleep_phase_30_sec AS digits,
      (epoch(bedtime_start) + bedtime_start_offset - epoch(day) + 43200) / 60 AS minute
    FROM sleep WHERE user_id = 'ada' AND type = 'long_sleep' ORDER BY day`);
  const { left, top, dayWidth, rowHeight } = await page
    .locator('.drawn canvas')
    .first()
    .evaluate(
      canvas =>
        ('__data__' in canvas ? canvas.__data__ : {}) as { layout: { left: number; top: number; dayWidth: number; rowHeight: number } },
    )
    .then(({ layout }) => layout);
  const all = sleeps.flatMap(({ row, digits, minute }) =>
    [...String(digits).matchAll(/(\d)\1{19,}/g)].flatMap(({ 0: run, 1: digit = '', index }) => {
      const at = Number(minute) + (index + run.length / 2) / 2;
      const place = (shift: number, up: number) =>
        [left + shift + (at / 1440) * dayWidth, top + (Number(row) - up + 0.4) * rowHeight].map(Math.floor);
      return [place(0, 0), ...(Number(row) > 0 ? [place(dayWidth, 1)] : [])].map(point => ({ point, colour: COLOURS[digit] ?? '' }));
    }),
  );
  const chosen = someOfMany(all, 60);
  return { points: chosen.map(({ point }) => point), colours: chosen.map(({ colour }) => colour) };
}

/** `#rrggbb` of points of the raster. */
const coloursAt = (page: Page, points: readonly number[][]) =>
  page.evaluate<string[]>(`{
    const canvas = document.querySelector('.drawn canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    ${JSON.stringify(points)}.map(([x, y]) => '#' + [0, 1, 2].map(part => data[4 * (y * canvas.width + x) + part].toString(16).padStart(2, '0')).join(''));
  }`);
