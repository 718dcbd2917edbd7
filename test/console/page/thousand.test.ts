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
  expect(complaints).toEqual([]);
});
