import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { violationsOf } from '../../support/axe.ts';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { drawn, enterConsole } from '../../support/console-page.ts';
import { isWhole, seed } from '../../support/whole.ts';
import { placePeople, sleepOf } from '../people-by-hand.ts';

const HOSTILE = `</script><img src=x onerror=alert(1)>"'{{7*7}}`;
/** No account is named so, but for one in somebody else’s file. */
const NAME = '<img src=x onerror=alert(1)>';
const NOW = Date.UTC(2025, 0, 20, 12);
const day = (n: number) => new Date(Date.UTC(2025, 0, n)).toISOString().slice(0, 10);
const series = (from: string, items: (number | null)[]) => ({ interval: 300, items, timestamp: from });

/** Twenty nights, of which the fifth is missing, and the last one is unusual. */
const NIGHTS = Array.from({ length: 20 }, (_, i) => i + 1)
  .filter(n => n !== 5)
  .map(n => {
    const from = `${day(n)}T00:30:00+01:00`;
    return sleepOf(day(n), from, `${day(n)}T08:30:00+01:00`, {
      ...{
        total_sleep_duration: 25_200 + 60 * (n % 7),
        time_in_bed: 28_800,
        average_hrv: n === 20 ? 90 : 50 + (n % 3),
        lowest_heart_rate: 55,
      },
      ...{ efficiency: 88, latency: 600, average_breath: 14.5, average_heart_rate: 58.2 },
      sleep_phase_30_sec: `${'4'.repeat(20)}${'2'.repeat(300)}${'1'.repeat(200)}${'3'.repeat(200)}${'2'.repeat(240)}`,
      movement_30_sec: '1'.repeat(960),
      heart_rate: series(
        from,
        Array.from({ length: 96 }, (_, i) => (i % 30 < 3 ? null : 55 + (i % 12))),
      ),
      hrv: series(
        from,
        Array.from({ length: 96 }, (_, i) => (i === 40 ? null : 45 + (i % 15))),
      ),
    });
  });
const ACTIVITY = Array.from({ length: 20 }, (_, i) => ({
  ...{ id: `a-${i + 1}`, day: day(i + 1), timestamp: `${day(i + 1)}T04:00:00+01:00`, class_5_min: '0'.repeat(12) + '2'.repeat(276) },
  ...{ steps: 8000 + 100 * i, active_calories: 300, score: 80, non_wear_time: 3600, resting_time: 30_000, sedentary_time: 40_000 },
  ...{ low_activity_time: 9000, medium_activity_time: 3000, high_activity_time: 800 },
  met: { interval: 60, timestamp: `${day(i + 1)}T04:00:00+01:00`, items: Array.from({ length: 1440 }, (_, m) => 1 + (m % 40) / 10) },
}));
/** All that comes from outside as text. */
const TEXTS = {
  enhanced_tag: [
    { id: 't-1', start_day: day(20), start_time: `${day(20)}T10:00:00+01:00`, custom_name: HOSTILE, comment: HOSTILE },
    { id: 't-2', start_day: day(20), start_time: `${day(20)}T11:00:00+01:00`, tag_type_code: 'tag_generic_nap', comment: 'n'.repeat(2000) },
  ],
  workout: [
    {
      id: 'w-1',
      day: day(20),
      activity: HOSTILE,
      label: HOSTILE,
      start_datetime: `${day(20)}T12:00:00+01:00`,
      end_datetime: `${day(20)}T13:00:00+01:00`,
    },
  ],
  session: [
    {
      id: 'm-1',
      day: day(20),
      type: HOSTILE,
      mood: HOSTILE,
      start_datetime: `${day(20)}T14:00:00+01:00`,
      end_datetime: `${day(20)}T14:30:00+01:00`,
    },
  ],
};
const LONG = 'n'.repeat(200);
const PEOPLE = {
  ann: {
    sleep: NIGHTS,
    daily_activity: ACTIVITY,
    ...TEXTS,
    daily_sleep: NIGHTS.map((_, i) => ({ id: `d-${i}`, day: day(i + 1), score: 60 + 2 * i })),
  },
  [NAME]: { sleep: NIGHTS.slice(0, 3) },
  [LONG]: { sleep: NIGHTS.slice(0, 16) },
};
/** A maximum, so that zones are drawn. */
const STUDY = { ann: { max_heart_rate: 180 } };

const name = encodeURIComponent;
const SQL = `SELECT '${HOSTILE.replaceAll("'", "''")}' AS "${HOSTILE.replaceAll('"', '""')}", 1 AS n UNION ALL SELECT '=1+1', 2`;
const SCREENS: Readonly<Record<string, string>> = {
  overview: '/',
  person: `/people/ann?day=${day(20)}`,
  'no night': `/people/ann?day=${day(5)}`,
  'hostile name': `/people/${name(NAME)}`,
  'long name': `/people/${LONG}?range=365d`,
  raster: `/people/ann/raster`,
  coverage: `/coverage?from=${day(1)}&to=${day(20)}&cell=${name(`ann/${day(5)}`)}`,
  sql: `/sql#q=${name(SQL)}`,
  operations: '/operations',
};
const LOOKS = [1440, 390].flatMap(width => (['light', 'dark'] as const).map(colorScheme => ({ width, colorScheme })));

/** RINGNECK_SCREENSHOTS names a folder into which each screen is drawn, for somebody to look at. */
const PICTURES = process.env.RINGNECK_SCREENSHOTS;

async function picture(page: Page, name: string): Promise<void> {
  if (PICTURES === undefined) return;
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name.replaceAll(' ', '-')}.png`), fullPage: true });
}

/** In the suite each screen in one look, on another day in another one. */
const screensIn = (look: number) => Object.entries(SCREENS).filter((_, at) => isWhole || (at + seed) % LOOKS.length === look);

test.skipIf(!hasChromium)(
  'every screen in each width and colour can be used by everybody, and what comes from outside stays text',
  async () => {
    const served = await openConsoleHere(await placePeople(PEOPLE, STUDY), { now: () => NOW });
    const browser = await openChromium();
    for (const [at, { width, colorScheme }] of LOOKS.entries()) {
      const look = { viewport: { width, height: 900 }, colorScheme, reducedMotion: 'reduce' as const, role: 'operator' as const };
      const { page, complaints, open } = await enterConsole(browser, served, look);
      for (const [screen, path] of screensIn(at)) {
        const about = `${screen} ${width} ${colorScheme}`;
        await open(path);
        if (screen === 'sql') {
          await page.getByRole('textbox', { name: 'SQL' }).focus();
          await page.keyboard.press('Control+Enter');
          await page.getByRole('heading', { name: '2 rows' }).waitFor();
        }
        await drawn(page);
        await picture(page, about);
        expect(await violationsOf(page), about).toEqual([]);
        expect(await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth'), about).toBeLessThanOrEqual(0);
        expect(await page.locator('main img, main script').count(), about).toBe(0);
        expect(await page.evaluate<number>('document.getAnimations().length'), about).toBe(0);
        expect(
          await page.locator('svg').evaluateAll(all => all.filter(one => /NaN|Infinity|undefined/.test(one.outerHTML)).length),
          about,
        ).toBe(0);
        // Labels of one axis, as `7.1 h`, are never the same.
        const twice = await page
          .locator('svg .axis:has(> g > [data-value])')
          .evaluateAll(
            axes =>
              axes.filter(axis =>
                (all => new Set(all).size < all.length)([...axis.querySelectorAll('[data-value]')].map(one => one.textContent)),
              ).length,
          );
        expect(twice, about).toBe(0);
        if (screen === 'person') {
          const told = await page.locator('.event-list').innerText();
          expect(told.split(HOSTILE).length - 1, about).toBe(6);
        }
      }
      expect(complaints, `${width} ${colorScheme}`).toEqual([]);
    }
  },
);

test.skipIf(!hasChromium)('the keyboard alone reaches everything: people, a night, a chart, its table, the raster, a query', async () => {
  const served = await openConsoleHere(await placePeople(PEOPLE, STUDY), { now: () => NOW });
  const { page, complaints, open } = await enterConsole(await openChromium(), served);
  await open('/');
  const focused = () =>
    page.evaluate<string>("(document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? '').trim()");
  /** Goes on with Tab until something is in focus, which must be seen to be. */
  const tabTo = async (wanted: RegExp) => {
    for (let n = 0; n < 150; n++) {
      await page.keyboard.press('Tab');
      if (wanted.test(await focused())) break;
    }
    expect(await focused()).toMatch(wanted);
    const outline = await page.evaluate<string>("(s => s.outlineStyle + ' ' + s.outlineWidth)(getComputedStyle(document.activeElement))");
    expect(outline, String(wanted)).not.toMatch(/^none|^\w+ 0px/);
  };
  await tabTo(/^ann$/);
  await page.keyboard.press('Enter');
  await page.waitForURL(`${served.url}/people/ann`);
  await drawn(page);
  await tabTo(/^The day before$/);
  await page.keyboard.press('Enter');
  await expect.poll(() => page.locator('h1').textContent()).toBe('ann · Sunday 19 January');
  await tabTo(/Arrow keys move a cursor/);
  await page.keyboard.press('End');
  expect(await page.locator('figure.night .told').textContent()).toMatch(/^08:25: light/);
  await tabTo(/^Table of Against the usual$/);
  await page.keyboard.press('Space');
  await page
    .getByRole('region', { name: /Against the usual/ })
    .or(page.locator('figure table.rows, figure .rows'))
    .first()
    .waitFor();
  await tabTo(/^Night after night$/);
  await page.keyboard.press('Enter');
  await page.waitForURL(`${served.url}/people/ann/raster`);
  await drawn(page);
  await tabTo(/Nights, noon to noon/);
  await page.keyboard.press('Home');
  await page.keyboard.press('Enter');
  await page.waitForURL(`${served.url}/people/ann?day=${day(1)}`);
  for (const [key, path] of [
    ['c', '/coverage'],
    ['x', '/operations'],
    ['o', '/'],
    // Its editor takes what is typed.
    ['s', '/sql'],
  ] as const) {
    await page.locator('main').focus();
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await page.waitForURL(`${served.url}${path}`);
  }
  expect(complaints).toEqual([]);
});

test.skipIf(!hasChromium)('on paper a person’s page has its charts and no buttons, on white', async () => {
  const served = await openConsoleHere(await placePeople(PEOPLE, STUDY), { now: () => NOW });
  const { page, open } = await enterConsole(await openChromium(), served, { colorScheme: 'dark' });
  await open(SCREENS.person ?? '');
  await page.emulateMedia({ media: 'print', colorScheme: 'light' });
  await drawn(page);
  await picture(page, 'print');
  expect(await page.locator('figure svg').first().isVisible()).toBe(true);
  const pressed = page.locator('button, select, kbd, nav a');
  expect(await pressed.evaluateAll(all => all.filter(one => one.checkVisibility()).map(one => one.textContent))).toEqual([]);
  expect((await page.pdf({ format: 'A4' })).length).toBeGreaterThan(20_000);
});
