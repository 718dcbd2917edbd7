import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { violationsOf } from '../../support/axe.ts';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { enterConsole } from '../../support/console-page.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { placeCoverage } from '../coverage-warehouse.ts';

const folder = tempFolder();

test.skipIf(!hasChromium)('the matrix is walked by keys, a cell is opened by keys and by a press, and the address holds it', async () => {
  const data = join(folder, 'matrix');
  await placeCoverage(data);
  const served = await openConsoleHere(data);
  const browser = await openChromium();
  const { page, complaints } = await enterConsole(browser, served);
  await page.goto(`${served.url}/coverage?from=2025-01-01&to=2025-01-04&collection=sleep`);
  const grid = page.getByRole('grid', { name: 'Coverage of people by days' });
  await grid.focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  expect(await grid.textContent()).toBe('ben, Friday 3 January: failed');
  const drawn = await page.locator('.matrix-cells canvas').evaluate(canvas => '__data__' in canvas && canvas.__data__);
  expect(drawn).toMatchObject({
    rows: [{ letters: 'eSfo' }, { letters: 'nnnn' }, { letters: 'pppp' }, { letters: 'sses' }],
    layout: { rows: 4, columns: 4 },
  });
  await page.keyboard.press('Enter');
  const cell = page.getByRole('region', { name: 'ben, Friday 3 January' });
  await cell.getByText('the request was refused (400)').waitFor();
  expect(new URL(page.url()).searchParams.get('cell')).toBe('ben/2025-01-03');
  await cell.getByRole('button', { name: 'Close' }).press('Enter');
  await expect.poll(() => grid.evaluate('document.activeElement.getAttribute("role")')).toBe('grid');
  await page.locator('.matrix-cells canvas').click({ position: { x: 40, y: 80 } });
  await page.getByRole('region', { name: 'ada, Thursday 2 January' }).waitFor();
  await page.getByRole('button', { name: 'not authorised' }).click();
  await expect.poll(() => page.getByRole('list', { name: 'People' }).textContent()).toBe('cleo parked');
  expect(complaints).toEqual([]);
  expect(await violationsOf(page)).toEqual([]);
  // Where a system forces its colours, a cross is still seen on its cell.
  await page.emulateMedia({ colorScheme: 'dark', forcedColors: 'active' });
  const coloursOfFailed = () =>
    page
      .getByRole('listitem')
      .filter({ hasText: /^\s*failed$/ })
      .locator('canvas')
      // biome-ignore lint/suspicious/noExplicitAny: tests know no types of a browser
      .evaluate((canvas: any) => {
        const { width, height } = canvas;
        const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
        return new Set(Array.from({ length: width * height }, (_, at) => data.slice(4 * at, 4 * at + 3).join(' '))).size;
      });
  await expect.poll(coloursOfFailed).toBeGreaterThan(1);
  await page.emulateMedia({ colorScheme: 'dark', forcedColors: 'none' });
  await page.setViewportSize({ width: 390, height: 800 });
  expect(await violationsOf(page)).toEqual([]);
});

test.skipIf(!hasChromium)('a picture has all days of a wide matrix, however far it is scrolled', async () => {
  const data = join(folder, 'picture');
  await placeCoverage(data);
  const served = await openConsoleHere(data);
  const { page, open } = await enterConsole(await openChromium(), served);
  await open('/coverage?from=2024-01-01&to=2024-12-31&collection=sleep');
  const take = async () => {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'PNG of People by days' }).click(),
    ]);
    return readFileSync(await download.path());
  };
  const picture = await take();
  // 366 days of 10 pixels, twice as sharp, beside the names.
  expect(picture.readUInt32BE(16)).toBeGreaterThan(7320);
  await page.locator('.matrix-room').evaluate(room => room.scrollTo(700, 0));
  expect((await take()).equals(picture)).toBe(true);
});
