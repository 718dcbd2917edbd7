import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { hasChromium, openChromium } from '../support/chromium.ts';
import { openConsoleHere } from '../support/console-harness.ts';
import { enterConsole } from '../support/console-page.ts';
import { placePeople, sleepOf } from './people-by-hand.ts';

const digits = (text: string) => text.replace(/(\d)x(\d+)/g, (_, digit: string, times: string) => digit.repeat(Number(times)));
const series = (timestamp: string, items: (number | null)[]) => ({ interval: 300, items, timestamp });

/** Ten minutes without a heart rate at the start, five in the middle, fifteen before the end. */
const HEART = [null, null, 60, 58, null, 57.5, 61, null, null, null, 59, 60];
const HRV = [40, null, 42, 44, 41, 40, 39, 38, 40, 41, 42, 43];
const STAGES = digits('1x20') + digits('2x10') + digits('3x10') + digits('4x10') + digits('7x1') + digits('2x69');

const night = (day: string, from: string, to: string) =>
  sleepOf(day, from, to, {
    ...{ sleep_phase_30_sec: STAGES, movement_30_sec: digits('1x10') + digits('4x10') + digits('1x100') },
    ...{
      heart_rate: series(from, HEART),
      hrv: series(from, HRV),
      average_hrv: 41,
      lowest_heart_rate: 57,
      total_sleep_duration: 3270,
      efficiency: 91,
    },
  });

const DAYS = Array.from({ length: 15 }, (_, i) => `2025-10-${String(i + 1).padStart(2, '0')}`);
const NIGHTS = DAYS.map((day, i) =>
  sleepOf(day, `${day}T01:00:00+02:00`, `${day}T08:00:00+02:00`, {
    average_hrv: i === 14 ? 80 : 50 + (i % 3),
    total_sleep_duration: 21_600 + 60 * i,
  }),
);

const data = () =>
  placePeople({
    // Clocks went back at 3:00; an hour of sleep by the sun, from 2:30 to 2:30.
    ann: { sleep: [...NIGHTS, night('2025-10-26', '2025-10-26T02:30:00+02:00', '2025-10-26T02:30:00+01:00')] },
    // A flight, and a clock of three quarters of an hour.
    ben: {
      sleep: [
        night('2025-03-02', '2025-03-01T23:10:00+01:00', '2025-03-01T19:10:00-04:00'),
        night('2025-03-05', '2025-03-05T00:20:00+05:45', '2025-03-05T01:20:00+05:45'),
        sleepOf('2025-03-05', '2025-03-05T14:00:00+05:45', '2025-03-05T14:30:00+05:45', { type: 'late_nap', total_sleep_duration: 1500 }),
      ],
    },
  });

let placed: Promise<string> | undefined;

async function start() {
  placed ??= data();
  const console = await openConsoleHere(await placed);
  const browser = await openChromium();
  return (timezoneId?: string) => enterConsole(browser, console, timezoneId ? { timezoneId } : {});
}

const all = (page: Page, selector: string, ...names: string[]): Promise<(string | null)[][]> =>
  page.locator(selector).evaluateAll((elements, of) => elements.map(element => of.map(name => element.getAttribute(name))), names);

test.skipIf(!hasChromium)('a night is drawn as it is stored: lanes, gaps, the lowest, the mean, and two rows of hours', async () => {
  const { page, complaints, open } = await (await start())();
  await open('/people/ann?day=2025-10-26');
  // Of 120 digits 20 are deep, 79 light, 10 REM, 10 awake, and one is none.
  expect(await all(page, '.lanes [data-total]', 'data-total', 'data-seconds')).toEqual([
    ['awake', '300'],
    ['rem', '300'],
    ['light', '2370'],
    ['deep', '600'],
  ]);
  // 2025-10-26T00:30:00Z
  const from = 1_761_438_600;
  expect(await all(page, '.night .heart_rate .gap', 'data-start', 'data-end')).toEqual([
    [`${from}`, `${from + 600}`],
    [`${from + 2100}`, `${from + 3000}`],
  ]);
  expect(await all(page, '.night .hrv .gap', 'data-start')).toEqual([]);
  const points = (await all(page, '.night .heart_rate [data-points]', 'data-points')).flat().join(' ').split(' ');
  expect(points).toEqual(HEART.flatMap((value, i) => (value === null ? [] : [`${from + 300 * i},${value}`])));
  expect(await all(page, '.night .lowest', 'data-lowest', 'data-at')).toEqual([['57.5', `${from + 1500}`]]);
  expect(await page.locator('.night .mean').getAttribute('data-mean')).toBe('41');
  // The digits 1111111111 4444444444 1… of movement.
  expect((await all(page, '.night .moved', 'data-value')).flat().map(Number)).toEqual([0, 1, ...new Array(10).fill(0)]);
  expect(await all(page, '.night [data-offset]', 'data-offset')).toEqual([['7200'], ['3600']]);
  expect(await page.locator('.night [data-offset] [data-at]').allTextContents()).toEqual(['03:00', '02:00']);
  expect(await page.locator('.sentence').textContent()).toContain('The clock moved back by 1 h 00 in this night');
  expect(complaints).toEqual([]);
});

test.skipIf(!hasChromium)('points are where the axes say', async () => {
  const { page, open } = await (await start())();
  await open('/people/ann?day=2025-10-26');
  const ticks = (await all(page, '.night .heart_rate text[data-value]', 'y', 'data-value')).map(([y, value]) => ({
    y: Number(y),
    value: Number(value),
  }));
  const [low, high] = [ticks[0]!, ticks.at(-1)!];
  // A label stands 4 below the line of its value.
  const valueAt = (y: number) => low.value + ((y + 4 - low.y) / (high.y - low.y)) * (high.value - low.value);
  const lines = await all(page, '.night .heart_rate .line', 'd', 'data-points');
  const drawn = lines.flatMap(([d, points]) => {
    const values = points!.split(' ').map(point => Number(point.split(',')[1]));
    return d!.match(/[\d.]+,[\d.]+/g)!.map((pair, i) => ({ y: Number(pair.split(',')[1]), value: values[i]! }));
  });
  expect(drawn.length).toBe(6);
  for (const { y, value } of drawn) expect(valueAt(y)).toBeCloseTo(value, 1);
});

test.skipIf(!hasChromium)('whoever looks from anywhere sees the same', async () => {
  const enter = await start();
  const seen = [];
  for (const zone of ['Pacific/Auckland', 'America/Los_Angeles']) {
    const { page, open } = await enter(zone);
    const screens = [];
    for (const path of ['/people/ben?day=2025-03-02', '/people/ben?day=2025-03-05', '/people/ann?day=2025-10-26']) {
      await open(path);
      await page.waitForLoadState('networkidle');
      // Figures are numbered in the order in which their answers came.
      screens.push((await page.locator('main').innerHTML()).replace(/"P\d+-\d+/g, '"P'));
    }
    seen.push(screens);
  }
  expect(seen[1]).toEqual(seen[0]);
});

test.skipIf(!hasChromium)('hours are those of the person: on a journey, and where they are three quarters off', async () => {
  const { page, open } = await (await start())();
  await open('/people/ben?day=2025-03-02');
  // From 22:10 to 23:10 UTC: 23:10 at UTC+1, and 19:10 at UTC−4 on waking.
  expect(await page.locator('.night .second').first().textContent()).toBe('23:10 – 19:10, ben’s clock (UTC+1, then UTC−4)');
  expect(await page.locator('.night [data-offset] [data-at]').allTextContents()).toEqual(['00:00', '19:00']);
  await open('/people/ben?day=2025-03-05');
  expect(await page.locator('.night [data-offset] [data-at]').allTextContents()).toEqual(['01:00']);
  await page.getByRole('button', { name: 'Nap 14:00' }).click();
  expect(await page.locator('figure.night h2').textContent()).toBe('Nap');
});

test.skipIf(!hasChromium)('keys step through days, ranges and the places of a chart; the address holds it', async () => {
  const { page, open } = await (await start())();
  await open('/people/ann?day=2025-10-15');
  const title = page.locator('h1');
  await page.keyboard.press('ArrowLeft');
  await expect.poll(() => title.textContent()).toBe('ann · Tuesday 14 October');
  await page.keyboard.press('Shift+ArrowLeft');
  await expect.poll(() => title.textContent()).toBe('ann · Tuesday 7 October');
  expect(page.url()).toContain('day=2025-10-07');
  expect(await all(page, '.trend [data-shown]', 'data-shown')).toEqual(new Array(6).fill(['2025-10-07']));
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press(']');
  await expect.poll(() => new URL(page.url()).search).toBe('?day=2025-10-08&range=180d');
  await page.keyboard.press('Home');
  await expect.poll(() => title.textContent()).toBe('ann · Sunday 26 October');
  await page.locator('figure.night .plot').focus();
  await page.keyboard.press('ArrowRight');
  expect(await page.locator('figure.night .told').textContent()).toBe('02:30: deep, no heart rate, HRV 40 ms, still');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  expect(await page.locator('figure.night .told').textContent()).toBe('02:40: light, heart rate 60, HRV 42 ms, still');
  expect(await title.textContent()).toBe('ann · Sunday 26 October');
});

test.skipIf(!hasChromium)('what is unusual is a diamond and a word; what is not known yet says so', async () => {
  const { page, open } = await (await start())();
  await open('/people/ann?day=2025-10-15');
  expect(await page.locator('.sentence .unusual').textContent()).toBe(
    'Heart rate variability (80 ms) is well above what is usual for ann. ',
  );
  const hrv = page.locator('tr[data-metric=average_hrv]');
  // Fourteen nights of 50, 51 and 52: median 51, MAD 1; the value is 80.
  expect(Number(await hrv.locator('path[data-z]').getAttribute('data-z'))).toBeCloseTo(29 / 1.4826, 9);
  expect(
    await page
      .locator('figure', { has: page.getByRole('heading', { name: 'Night HRV' }) })
      .locator('[data-day="2025-10-15"].unusual-mark')
      .count(),
  ).toBe(1);
  await open('/people/ann?day=2025-10-09');
  expect(await hrv.textContent()).toContain('not enough nights yet (8 of 14)');
});

test.skipIf(!hasChromium)('a chart is a table, a query, a file and a picture too', async () => {
  const { page, complaints, open } = await (await start())();
  await open('/people/ann?day=2025-10-26');
  const figure = page.locator('figure.night');
  await figure.getByRole('button', { name: 'Table' }).click();
  expect(await figure.locator('tbody tr').count()).toBe(12);
  expect(await figure.locator('tbody tr').nth(2).locator('td').allTextContents()).toEqual(['2025-10-26 02:40', 'light', '60', '42', '0']);
  await figure.getByRole('button', { name: 'SQL' }).click();
  expect(await figure.locator('pre').textContent()).toContain("user_id = 'ann' AND day = '2025-10-26'::DATE");
  const saved = async (name: string) => {
    const [download] = await Promise.all([page.waitForEvent('download'), figure.getByRole('button', { name }).click()]);
    return download.suggestedFilename();
  };
  expect(await saved('CSV')).toBe('ann-2025-10-26-night.csv');
  expect(await saved('PNG')).toBe('ann-2025-10-26-night.png');
  expect(complaints).toEqual([]);
});
