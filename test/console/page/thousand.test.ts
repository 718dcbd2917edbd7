import { join } from 'node:path';
import { expect, test } from 'vitest';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { drawn, enterConsole } from '../../support/console-page.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { openWarehouse, placeWarehouse, withDuckDB } from '../../support/warehouse.ts';

/** p0000 to p0999, each with 30 nights to 30 January 2025; of p0500 the last two are not there. */
async function placeThousand(data: string): Promise<void> {
  const path = join(data, 'warehouse.duckdb');
  placeWarehouse(path);
  await withDuckDB(path, async connection => {
    await connection.run(
      `INSERT INTO sync.accounts (user_id, state, since) SELECT format('p{:04d}', i), 'active', '2025-01-01' FROM range(1000) people(i)`,
    );
    await connection.run(`INSERT INTO sleep (user_id, id, day, type, bedtime_start, bedtime_end, bedtime_start_offset, bedtime_end_offset,
        total_sleep_duration, time_in_bed, average_hrv, lowest_heart_rate, sk)
      SELECT format('p{:04d}', i), format('s-{}-{}', i, n), DATE '2025-01-01' + n::INTEGER, 'long_sleep', TIMESTAMP '2025-01-01' + to_days(n::INTEGER),
        TIMESTAMP '2025-01-01 08:00:00' + to_days(n::INTEGER), 0, 0, 25200 + 60 * (n % 7), 28800, 50 + (i + n) % 5, 55 + n % 3, 1 + 30 * i + n
      FROM range(1000) people(i), range(30) nights(n) WHERE NOT (i = 500 AND n > 27)`);
  });
  const warehouse = await openWarehouse(path);
  await warehouse.snapshot(join(data, 'snapshot.duckdb'), 0o600);
  await warehouse.close();
}

test.skipIf(!hasChromium)('a thousand people are paged, searched and ordered, and coverage shows them page by page', async () => {
  const data = join(tempFolder(), 'thousand');
  await placeThousand(data);
  const served = await openConsoleHere(data, { now: () => Date.UTC(2025, 0, 30, 12) });
  const { page, complaints, open } = await enterConsole(await openChromium(), served);
  const names = () => page.locator('.people .name').allInnerTexts();
  const fileOf = async (title: string) => {
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: `CSV of ${title}`, exact: true }).click();
    return (await saved).suggestedFilename();
  };
  await open('/');
  expect(await page.locator('.sentence').innerText()).toMatch(
    /^999 of 1000 people have last night\. p0500 has no night since Tuesday 28 January\./,
  );
  expect((await names()).slice(0, 3)).toEqual(['p0500', 'p0000', 'p0001']);
  expect([(await names()).length, await page.locator('.pages').innerText()]).toEqual([60, expect.stringContaining('Page 1 of 17')]);
  await page.getByRole('button', { name: 'After' }).click();
  await expect.poll(async () => (await names())[0]).toBe('p0059');
  expect(page.url()).toBe(`${served.url}/?page=2`);
  await open('/?page=17&sort=name');
  expect(await names()).toEqual(Array.from({ length: 40 }, (_, at) => `p${960 + at}`.replace('p9', 'p09')));
  // Who saves or reads what is on a page is told that it is a part.
  expect(await fileOf('Last night, everybody')).toBe('overview-page-17-of-17.csv');
  const part = 'People of page 17 of 17, 1,000 in all.';
  expect(await page.locator('figcaption').innerText()).toContain(part);
  await page.keyboard.press('/');
  await page.keyboard.type('p099');
  await expect.poll(names).toEqual(Array.from({ length: 10 }, (_, at) => `p099${at}`));
  expect(await page.locator('.finder').innerText()).toContain('10 of 1000 people');
  await page.keyboard.type('x');
  await page.getByText('Nobody is called so.').waitFor();
  await open('/coverage?sort=name&page=17');
  expect(await page.getByRole('list', { name: 'People' }).getByRole('listitem').count()).toBe(40);
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
  await drawn(page);
  for (const [title, file] of [
    ['People by days', /^coverage-.*-page-17-of-17\.csv$/],
    ['Compliance', /^compliance-.*-page-17-of-17\.csv$/],
    ['Night HRV, group', /^group-.*-page-17-of-17\.csv$/],
  ] as const) {
    expect(await fileOf(title)).toMatch(file);
    expect(await page.locator('figure', { has: page.getByRole('heading', { name: title, exact: true }) }).innerText()).toContain(part);
  }
  expect(complaints).toEqual([]);
});

test.skipIf(!hasChromium)('the cursor of the keyboard stays in view, however large the matrix and however small the screen', async () => {
  const data = join(tempFolder(), 'cursor');
  await placeThousand(data);
  const served = await openConsoleHere(data, { now: () => Date.UTC(2025, 0, 30, 12) });
  const { page, complaints, open } = await enterConsole(await openChromium(), served);
  /** How far the cell of the cursor lies beyond the screen, or below what covers it: pixels. */
  const beyond = () =>
    page.evaluate<number>(`(() => {
      const { left, right, top, bottom } = document.querySelector('.matrix-cursor').getBoundingClientRect();
      const bar = document.querySelector('header.bar nav').getBoundingClientRect().top;
      return Math.floor(Math.max(-left, -top, right - innerWidth, bottom - (bar > innerHeight / 2 ? bar : innerHeight)));
    })()`);
  await open('/coverage?sort=name');
  await page.getByRole('grid', { name: 'Coverage of people by days' }).focus();
  for (const size of [
    { width: 1440, height: 900 },
    { width: 390, height: 800 },
  ]) {
    await page.setViewportSize(size);
    for (const key of ['Control+Home', 'Control+End', 'ArrowUp']) {
      await page.keyboard.press(key);
      expect(await beyond(), `${size.width}, ${key}`).toBeLessThanOrEqual(0);
    }
  }
  expect(complaints).toEqual([]);
});
