import { beforeAll, expect, test } from 'vitest';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { enterConsole } from '../../support/console-page.ts';
import { placePeople, sleepOf } from '../people-by-hand.ts';

const day = (n: number) => new Date(Date.UTC(2025, 0, n)).toISOString().slice(0, 10);
const NOW = Date.UTC(2025, 0, 20, 12);
/** All nights are the same, but for the time asleep of the last one. */
const NIGHTS = Array.from({ length: 20 }, (_, at) =>
  sleepOf(day(at + 1), `${day(at + 1)}T00:30:00Z`, `${day(at + 1)}T08:30:00Z`, {
    ...{ total_sleep_duration: at === 19 ? 18_000 : 25_200, average_hrv: 50, lowest_heart_rate: 55, efficiency: 90 },
    heart_rate: { interval: 300, items: Array.from({ length: 96 }, (_, i) => 57 + (i % 5)), timestamp: `${day(at + 1)}T00:30:00Z` },
  }),
);
const ACTIVITY = Array.from({ length: 20 }, (_, at) => ({
  ...{ id: `a-${at + 1}`, day: day(at + 1), timestamp: `${day(at + 1)}T04:00:00Z` },
  ...{ steps: at === 19 ? 900 : 8000 + 50 * (at % 3), active_calories: at % 3 ? 300 : 200 + 10 * at, score: 80 },
  // At noon eight hours of the day are recorded, of others all of it.
  ...{ non_wear_time: 0, resting_time: at === 19 ? 28_800 : 72_000, sedentary_time: 0, low_activity_time: 0 },
  ...{ medium_activity_time: 0, high_activity_time: 0 },
}));
/** A journey of five days, and a concert past midnight. */
const TAGS = [
  {
    id: 'j',
    start_day: day(11),
    end_day: day(15),
    start_time: `${day(11)}T09:00:00Z`,
    end_time: `${day(15)}T18:00:00Z`,
    custom_name: 'journey',
  },
  {
    id: 'c',
    start_day: day(13),
    end_day: day(14),
    start_time: `${day(13)}T21:00:00Z`,
    end_time: `${day(14)}T01:00:00Z`,
    custom_name: 'concert',
  },
];
/** Of both the heart beats from 57 to 61: half of 180 is 90, and 60 % of 100 is 60. */
const STUDY = { ann: { max_heart_rate: 180 }, ben: { max_heart_rate: 100 } };

let data = '';
beforeAll(async () => {
  data = hasChromium
    ? await placePeople(
        {
          ann: { sleep: NIGHTS, daily_activity: ACTIVITY, enhanced_tag: TAGS },
          ben: { sleep: NIGHTS },
          cleo: { daily_activity: ACTIVITY },
        },
        STUDY,
      )
    : '';
});

async function look() {
  const served = await openConsoleHere(data, { now: () => NOW });
  return enterConsole(await openChromium(), served);
}

test.skipIf(!hasChromium)('where most values are the same a mark says no number, and an unfinished day is not judged', async () => {
  const { page, complaints, open } = await look();
  await open(`/people/ann?day=${day(20)}`);
  const told = (metric: string) => page.locator(`tr[data-metric=${metric}]`).innerText();
  expect((await told('total_sleep_duration')).replace(/\s+/g, ' ')).toBe('Time asleep 5 h 00 the same on most days before');
  expect(await told('efficiency')).toContain('the same on most days before');
  // Of these a least spread is believed: the value is as usual, not unknown.
  expect(await page.locator('tr[data-metric=average_hrv] [data-z]').getAttribute('data-z')).toBe('0');
  expect(await page.locator('.sentence').innerText()).toBe('5 h 00 asleep, 2 h 00 less than usual.');
  expect(await page.locator('.sentence .unusual').count()).toBe(0);
  expect(await told('steps')).toContain('900');
  expect(await told('steps')).toContain('not judged: the day is not over');
  // The band of no width is drawn where it is, with an axis of which nothing is invented but its room.
  const hrv = page.locator('figure', { has: page.getByRole('heading', { name: 'Night HRV' }) });
  expect(await hrv.locator('.band-area').count()).toBe(1);
  expect(await page.locator('svg').evaluateAll(all => all.filter(one => /NaN|Infinity/.test(one.outerHTML)).length)).toBe(0);
  await open(`/people/ann?day=${day(19)}`);
  expect(await page.locator('tr[data-metric=steps] [data-z]').count()).toBe(1);
  expect(await told('active_calories')).toContain('the same on most days before');
  expect(complaints).toEqual([]);
});

test.skipIf(!hasChromium)('a trend without any value has no axis of values, and says that there is none', async () => {
  const { page, complaints, open } = await look();
  await open(`/people/cleo?day=${day(20)}&metrics=average_hrv,steps`);
  const empty = page.locator('figure:has(option[value=average_hrv]:checked)');
  expect(await empty.locator('[data-value]').count()).toBe(0);
  expect(await empty.locator('[data-nothing]').textContent()).toBe('no value in these days');
  expect(await empty.locator('[data-none]').count()).toBe(90);
  expect(await empty.locator('figcaption').textContent()).toBe('No value in this range.');
  const steps = page.locator('figure:has(option[value=steps]:checked)');
  expect(await steps.locator('.axis [data-value]').count()).toBeGreaterThan(1);
  expect(await steps.locator('[data-nothing]').count()).toBe(0);
  expect(complaints).toEqual([]);
});

test.skipIf(!hasChromium)('of zones those are told that are to be seen', async () => {
  const { page, complaints, open } = await look();
  const caption = page.locator('figure:has(.mets) figcaption');
  const zones = page.locator('[data-zone]');
  await open(`/people/ann?day=${day(20)}`);
  expect(await caption.textContent()).toContain('No zone of a maximum of 180, from participants, begins in what is drawn.');
  expect(await zones.count()).toBe(0);
  await open(`/people/ben?day=${day(20)}`);
  expect(await caption.textContent()).toContain('Dotted: 60 % of a maximum of 100, from participants.');
  expect(await zones.evaluateAll(all => all.map(one => one.getAttribute('data-zone')))).toEqual(['0.6']);
  // Nothing came: no line lies anywhere.
  await open(`/people/cleo?day=${day(20)}`);
  expect(await page.getByText('Heart rate: none came').count()).toBe(1);
  expect(complaints).toEqual([]);
});

test.skipIf(!hasChromium)('what lasts for days is told on each of them, with the day on which it ends', async () => {
  const { page, complaints, open } = await look();
  const told = async (n: number) => {
    await open(`/people/ann?day=${day(n)}`);
    return page.locator('.event-list li').allInnerTexts();
  };
  expect(await told(11)).toEqual(['09:00 – 2025-01-15 18:00 journey']);
  expect(await told(13)).toEqual(['since 2025-01-11 09:00 – 2025-01-15 18:00 journey', '21:00 – 2025-01-14 01:00 concert']);
  expect(await told(15)).toEqual(['since 2025-01-11 09:00 – 18:00 journey']);
  expect(complaints).toEqual([]);
});

test.skipIf(!hasChromium)('each press of a key is a day further, though none before it has been answered', async () => {
  const { page, complaints, open } = await look();
  await open('/people/ann');
  let answer = () => {};
  const answered = new Promise<void>(resolve => {
    answer = resolve;
  });
  await page.route('**/api/people/**', async route => {
    await answered;
    // Of those that were left nobody waits any more.
    await route.continue().catch(() => undefined);
  });
  for (const key of ['ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'ArrowRight']) await page.keyboard.press(key);
  await page.getByRole('button', { name: 'The day before' }).click();
  answer();
  await page.getByRole('heading', { name: 'ann · Friday 17 January' }).waitFor();
  expect(new URL(page.url()).search).toBe('?day=2025-01-17');
  expect(complaints).toEqual([]);
});

test.skipIf(!hasChromium)('presses within one frame are a step each', async () => {
  const { page, complaints, open } = await look();
  await open('/people/ann');
  const press = (keys: string) =>
    page.evaluate(`(async () => {
      for (const key of ${JSON.stringify(keys.split(' '))}) {
        dispatchEvent(new KeyboardEvent('keydown', { key }));
        await null; await null;
      }
    })()`);
  await press('ArrowLeft ArrowLeft ArrowLeft ArrowRight');
  expect(new URL(page.url()).search).toBe('?day=2025-01-18');
  await press('] ]');
  expect(new URL(page.url()).search).toBe('?day=2025-01-18&range=365d');
  expect(complaints).toEqual([]);
});
