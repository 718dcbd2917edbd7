import { renameSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { AppCommands } from '../../../src/app/commands.ts';
import { readSettings } from '../../../src/base/config.ts';
import { violationsOf } from '../../support/axe.ts';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { type ConsoleHarness, openConsoleHere } from '../../support/console-harness.ts';
import { enterConsole, type Looking } from '../../support/console-page.ts';
import { openHarness } from '../../support/harness.ts';
import { someOf } from '../../support/whole.ts';
import { placePeople, sleepOf } from '../people-by-hand.ts';

const NOW = Date.UTC(2025, 0, 16, 13, 45);
const HOSTILE = '<img src=x onerror=alert(1)>';
const LONG = 'n'.repeat(200);
const day = (n: number) => new Date(Date.UTC(2025, 0, n)).toISOString().slice(0, 10);

/** Nights of 16 days, the last of which is unusual; 10 minutes deep, 20 REM, 30 awake, then 7 h light. */
const NIGHTS = Array.from({ length: 16 }, (_, i) =>
  sleepOf(day(i + 1), `${day(i + 1)}T00:30:00+01:00`, `${day(i + 1)}T08:30:00+01:00`, {
    ...{ total_sleep_duration: 21_600, time_in_bed: 28_800, average_hrv: i === 15 ? 80 : 50 + 2 * (i % 2), lowest_heart_rate: 55 },
    sleep_phase_30_sec: `${'1'.repeat(20)}${'3'.repeat(40)}${'4'.repeat(60)}${'2'.repeat(840)}`,
  }),
);
const others = Array.from({ length: 27 }, (_, i) => [`p${i + 10}`, {}] as const);
const PEOPLE = Object.fromEntries([['ann', { sleep: NIGHTS }], [HOSTILE, { sleep: NIGHTS.slice(0, 3) }], [LONG, {}], ...others]);

interface Look {
  width: number;
  colorScheme: 'light' | 'dark';
}

/** Somebody before the overview. */
async function lookIn(browser: Browser, served: ConsoleHarness, { width, colorScheme }: Look): Promise<Looking> {
  const looking = await enterConsole(browser, served, {
    ...{ viewport: { width, height: 900 }, colorScheme, reducedMotion: 'reduce', role: 'operator' },
  });
  await looking.open('/');
  await looking.page.getByRole('heading', { name: 'Good afternoon' }).waitFor();
  return looking;
}

const LOOKS: Look[] = [1440, 390].flatMap(width => (['light', 'dark'] as const).map(colorScheme => ({ width, colorScheme })));

const TRENDS =
  '/api/people/ann/trends?day=2025-01-15&metrics=average_hrv%2Clowest_heart_rate%2Ctemperature_deviation%2Ctotal_sleep_duration%2Caverage_breath%2Csleep_score&days=90';

test.skipIf(!hasChromium)('what a page asks first is on its way before its code, and is asked once', async () => {
  const served = await openConsoleHere(await placePeople(PEOPLE), { now: () => NOW });
  const { page, complaints } = await lookIn(await openChromium(), served, { width: 1440, colorScheme: 'light' });
  for (const [path, heading, asked] of [
    ['/?sort=name', 'Good afternoon', ['/api/people?q=&sort=name&page=1']],
    ['/people/ann?day=2025-01-15', 'ann', ['/api/people/ann/day/2025-01-15', '/api/people/ann/night/2025-01-15', TRENDS]],
  ] as const) {
    const requests: string[] = [];
    const note = (request: { url(): string }) => requests.push(request.url().slice(served.url.length));
    page.on('request', note);
    await page.goto(`${served.url}${path}`);
    await page.getByRole('heading', { name: heading }).first().waitFor();
    page.off('request', note);
    const found = requests.filter(one => /^\/api\/(session|people\?|people\/ann\/((day|night)\/2025-01-15|trends))/.test(one));
    expect(found.sort()).toEqual([...asked, '/api/session'].sort());
    // One is listed when its answer has come.
    const listBegun = () =>
      page.evaluate<string[]>("performance.getEntriesByType('resource').filter(one => one.initiatorType === 'link').map(one => one.name)");
    await expect
      .poll(async () => (await listBegun()).map(one => one.slice(served.url.length)), { timeout: 10_000 })
      .toEqual(expect.arrayContaining(found));
  }
  expect(complaints).toEqual([]);
});

test.skipIf(!hasChromium)('trends are asked again by who steps out of their range', async () => {
  const served = await openConsoleHere(await placePeople(PEOPLE), { now: () => NOW });
  const { page } = await lookIn(await openChromium(), served, { width: 1440, colorScheme: 'light' });
  await page.goto(`${served.url}/people/ann?day=2025-01-15&range=30d`);
  await page.locator('.trend').first().waitFor();
  const asked: (string | null)[] = [];
  page.on('request', request => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname.endsWith('/trends')) asked.push(searchParams.get('day'));
  });
  await page.keyboard.press('ArrowLeft');
  await page.locator('.trend .shown[data-shown="2025-01-14"]').first().waitFor({ state: 'attached' });
  expect(asked).toEqual([]);
  await page.goto(`${served.url}/people/ann?day=2025-01-15&range=90d`);
  await page.locator('.trend').first().waitFor();
  expect(asked).toEqual(['2025-01-15']);
});

test.skipIf(!hasChromium)('thirty people are shown, with names of all kinds, in each width and colour, for everybody to use', async () => {
  const served = await openConsoleHere(await placePeople(PEOPLE), { now: () => NOW });
  const browser = await openChromium();
  for (const look of someOf(LOOKS, { more: 2 })) {
    const { page, complaints } = await lookIn(browser, served, look);
    const name = `${look.width} ${look.colorScheme}`;
    expect(await page.locator('.people tbody tr').count(), name).toBe(30);
    expect(await page.locator('.people tbody tr').first().locator('td').first().innerText(), name).toBe('6 h 00\n00:30 – 08:30');
    expect(await page.locator('.people .name').allInnerTexts(), name).toEqual(expect.arrayContaining([HOSTILE, LONG, 'ann']));
    expect(await page.locator('img').count(), name).toBe(0);
    expect(await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth'), name).toBeLessThanOrEqual(0);
    expect(await violationsOf(page), name).toEqual([]);
    if ((look.width === 390) === (look.colorScheme === 'dark')) {
      await page.goto(`${served.url}/people/ann/raster`);
      await page.locator('.drawn canvas').nth(1).waitFor();
      expect(await violationsOf(page), `raster ${name}`).toEqual([]);
    }
    expect(complaints, name).toEqual([]);
  }
});

test.skipIf(!hasChromium)('what is drawn of a raster is the stages of the nights, and a night that is pressed opens', async () => {
  const served = await openConsoleHere(await placePeople(PEOPLE), { now: () => NOW });
  const { page, complaints } = await lookIn(await openChromium(), served, { width: 1440, colorScheme: 'light' });
  await page.goto(`${served.url}/people/ann/raster`);
  const canvas = page.locator('.drawn canvas').first();
  await canvas.waitFor();
  const { left, top, dayWidth, rowHeight } = await page.evaluate<Layout>("document.querySelector('.drawn canvas').__data__.layout");
  // Minutes from noon: 00:35 is deep, 00:45 REM, 01:15 awake, 02:00 to 08:00 light; 20:00 is nothing.
  const expected: [number, string][] = [
    [755, '#1d3b7a'],
    [765, '#3c9a8e'],
    [795, '#c9801d'],
    [840, '#6f95d2'],
    [1190, '#6f95d2'],
    [480, 'none'],
  ];
  // In the right half a night is in the row above.
  const places = [0, 7, 15].flatMap(row => [[row, 0], ...(row ? [[row - 1, dayWidth]] : [])]);
  const points = places.flatMap(([row = 0, shift = 0]) =>
    expected.map(([minutes]) => [left + shift + (minutes / 1440) * dayWidth, top + (row + 0.4) * rowHeight].map(Math.floor)),
  );
  expect(await coloursAt(page, points)).toEqual(places.flatMap(() => expected.map(([, colour]) => colour)));
  await page.getByRole('group', { name: 'Nights, noon to noon' }).focus();
  await page.keyboard.press('ArrowRight');
  expect(await page.locator('.told').first().innerText()).toBe('Wednesday 1 January 2025: in bed from 00:30 to 08:30 (UTC+1), 8 h 00');
  await canvas.click({ position: { x: left + 200, y: top + 2.5 * rowHeight } });
  await page.waitForURL(`${served.url}/people/ann?day=2025-01-03`);
  expect(complaints).toEqual([]);
});

interface Layout {
  left: number;
  top: number;
  dayWidth: number;
  rowHeight: number;
}

/** `#rrggbb` of points of the raster, or none where nothing is drawn. */
const coloursAt = (page: Page, points: readonly number[][]) =>
  page.evaluate<string[]>(`{
    const canvas = document.querySelector('.drawn canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    ${JSON.stringify(points)}.map(([x, y]) => {
      const at = 4 * (y * canvas.width + x);
      return data[at + 3] === 0 ? 'none' : '#' + [...data.slice(at, at + 3)].map(part => part.toString(16).padStart(2, '0')).join('');
    });
  }`);

test.skipIf(!hasChromium)(
  'keys find people, change screens and colours, and are listed; the address holds what is looked for',
  async () => {
    const served = await openConsoleHere(await placePeople(PEOPLE), { now: () => NOW });
    const { page, complaints } = await lookIn(await openChromium(), served, { width: 1440, colorScheme: 'light' });
    await page.keyboard.press('/');
    await page.keyboard.type('AN');
    await expect.poll(() => page.locator('.people .name').allInnerTexts()).toEqual(['ann']);
    expect(page.url()).toBe(`${served.url}/?q=AN`);
    await page.locator('.people .name').click();
    await page.waitForURL(`${served.url}/people/ann`);
    await page.keyboard.press('g');
    await page.keyboard.press('o');
    await page.waitForURL(`${served.url}/`);
    await page.keyboard.press('g');
    await page.keyboard.press('p');
    await page.waitForURL(`${served.url}/people/ann`);
    await page.keyboard.press('/');
    await page.waitForURL(`${served.url}/`);
    await expect.poll(() => page.evaluate('document.activeElement?.id')).toBe('find');
    await page.locator('main').focus();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    for (const theme of ['light', 'dark', null]) {
      await page.keyboard.press('t');
      expect(await page.locator('html').getAttribute('data-theme')).toBe(theme);
    }
    await page.goto(`${served.url}/people/nobody`);
    await page.getByText('Nobody is called nobody.').waitFor();
    expect(complaints.filter(text => !text.includes('404'))).toEqual([]);
    await page.goto(`${served.url}/nowhere`);
    await page.getByText('There is nothing at this address.').waitFor();
  },
);

test.skipIf(!hasChromium)('where nobody is followed the page says how to begin', async () => {
  const served = await openConsoleHere(await placePeople({}));
  const browser = await openChromium();
  const { page, open } = await enterConsole(browser, served, { role: 'operator' });
  await open('/');
  await page.getByRole('heading', { name: 'Sign in the first person' }).waitFor();
  expect(await page.locator('pre').allInnerTexts()).toEqual(['ringneck account add NAME', 'ringneck demo --keep']);
  expect(await violationsOf(page)).toEqual([]);
});

test.skipIf(!hasChromium)('before the first snapshot the page does not say that nobody is followed', async () => {
  const data = await placePeople({ ann: {}, ben: {} });
  const [snapshot, aside] = [join(data, 'snapshot.duckdb'), join(data, 'aside')];
  renameSync(snapshot, aside);
  const commands = {
    ...{ activeRuns: async () => [], listAccounts: async () => [{ state: 'active' }, { state: 'active' }] },
    ...{
      isSnapshotOfAnother: async () => false,
      readHindrances: async () => ({}),
      listRecentEvents: async () => ({ count: 0, events: [] }),
    },
  } as unknown as AppCommands;
  const served = await openConsoleHere(data, { commands });
  const { page, open } = await enterConsole(await openChromium(), served, { role: 'operator' });
  await open('/');
  await page.getByRole('heading', { name: '2 people are followed' }).waitFor();
  expect(await page.getByRole('main').innerText()).not.toContain('Nobody');
  renameSync(aside, snapshot);
  await page.locator('tr[data-person=ben]').waitFor();
});

test.skipIf(!hasChromium)('where nobody is followed an operator makes the first sign-in link, copies it, and sees it once', async () => {
  const { enrolment, signIn } = readSettings({
    ...{ RINGNECK_SERVICE_URL: 'http://127.0.0.1:9', RINGNECK_CLIENT_ID: 'study', RINGNECK_CLIENT_SECRET: 'client-secret' },
    ...{ RINGNECK_PUBLIC_URL: 'https://study.example', RINGNECK_STUDY_NAME: 'The study', RINGNECK_STUDY_CONTACT: 'study@example.org' },
  });
  const data = await placePeople({});
  const harness = await openHarness(data, 'http://127.0.0.1:9', { settings: { enrolment, signIn } });
  const served = await openConsoleHere(data, { commands: harness.commands, settings: { enrolment, signIn } });
  const context = await (await openChromium()).newContext({ viewport: { width: 390, height: 844 } });
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: served.listening });
  const page = await context.newPage();
  await page.goto(served.createLink({ role: 'operator', person: null }));
  const button = page.getByRole('button', { name: 'Make a sign-in link' }).first();
  await button.waitFor();
  expect([await page.locator('pre').allInnerTexts(), await button.isDisabled()]).toEqual([['ringneck demo --keep'], true]);
  expect(await violationsOf(page)).toEqual([]);
  const ask = async (name: string) => {
    await page.getByLabel('Name').fill(name);
    await button.click();
  };
  await ask('cleo b');
  await page.getByText('"cleo b" cannot name an account').waitFor();
  expect(await page.locator('.act-do').count()).toBe(0);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await ask('cleo');
  await page.getByText('A link is made by which cleo signs in, for 14 days.').waitFor();
  await page.locator('.act-do').click();
  await page.getByText('Give this link to cleo, and to nobody else.').waitFor();
  const link = await page.locator('.act-url').inputValue();
  expect(link).toMatch(/^https:\/\/study\.example\/connect\/[\w-]{43}$/);
  expect(await violationsOf(page)).toEqual([]);
  await page.getByRole('button', { name: 'Copy' }).click();
  await page.getByText('Copied.').waitFor();
  expect(await page.evaluate<string>('navigator.clipboard.readText()')).toBe(link);
  expect((await harness.commands.listInvitations()).map(({ user_id: user }) => user)).toEqual(['cleo']);
  await page.getByRole('button', { name: 'Close' }).click();
  await button.click();
  await page.getByText('A link is made by which cleo signs in').waitFor();
  expect(await page.locator('.act-url').count()).toBe(0);
  await page.goto(served.createLink({ role: 'reader', person: null }));
  await page.getByText('ringneck account invite NAME').waitFor();
  expect(await page.getByRole('button', { name: 'Make a sign-in link' }).count()).toBe(0);
});

test.skipIf(!hasChromium)('a cut link is said in the bar beside what fails, which is asked again once the link is back', async () => {
  const served = await openConsoleHere(await placePeople(PEOPLE), { now: () => NOW });
  const { page, open } = await enterConsole(await openChromium(), served);
  await open('/people/ann?day=2025-01-15');
  await page.locator('.trend').first().waitFor();
  await page.context().setOffline(true);
  await page.keyboard.press('ArrowLeft');
  await page.getByRole('alert').filter({ hasText: 'The console does not answer.' }).first().waitFor();
  await expect.poll(() => page.locator('.fresh').innerText()).toMatch(/Connection lost, trying again\.$/);
  await page.context().setOffline(false);
  await page.getByRole('heading', { name: 'ann · Tuesday 14 January' }).waitFor();
  await expect.poll(() => page.getByRole('alert').count()).toBe(0);
  await expect.poll(() => page.locator('.fresh').innerText()).not.toMatch(/Connection lost/);
});
