import { expect, test } from 'vitest';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { drawn, enterConsole } from '../../support/console-page.ts';
import { placePeople, sleepOf } from '../people-by-hand.ts';

const NOW = Date.UTC(2025, 0, 20, 12);
const night = sleepOf('2025-01-04', '2025-01-04T00:30:00+01:00', '2025-01-04T08:30:00+01:00');

test.skipIf(!hasChromium)('a day is typed digit by digit, and what it cannot be answered with leaves room for another', async () => {
  const served = await openConsoleHere(await placePeople({ ann: { sleep: [night] } }), { now: () => NOW });
  const { page, open } = await enterConsole(await openChromium(), served, { locale: 'en-US' });
  const asked = new Set<object>();
  page.on('request', request => request.url().endsWith('/stream') || asked.add(request));
  for (const end of ['requestfinished', 'requestfailed'] as const) page.on(end as 'requestfinished', request => void asked.delete(request));
  const type = async (digits: string) => {
    await page.getByLabel('From').focus();
    for (const digit of digits) {
      await page.keyboard.press(digit);
      // What came of the digits before is shown while the next ones are typed.
      await drawn(page);
      await expect.poll(() => asked.size).toBe(0);
      await drawn(page);
    }
    await page.keyboard.press('Tab');
  };
  for (const path of ['/coverage?from=2025-01-01&to=2025-01-20', '/people/ann/raster?from=2025-01-01&to=2025-01-20']) {
    await open(path);
    await type('12152024');
    expect(new URL(page.url()).searchParams.get('from'), path).toBe('2024-12-15');
    expect(await page.getByLabel('From').inputValue(), path).toBe('2024-12-15');
    expect(await page.getByRole('alert').count(), path).toBe(0);
  }
  await open('/people/ann/raster?from=2027-01-01&to=2025-01-20');
  await page.getByText('2025-01-20 lies before 2027-01-01.').waitFor();
  await type('01012025');
  await page.getByRole('heading', { name: 'Sleep raster' }).waitFor();
  expect(await page.getByRole('alert').count()).toBe(0);
  await open('/people/nobody');
  await page.getByRole('main').getByRole('link', { name: 'Overview' }).press('Enter');
  await page.waitForURL(`${served.url}/`);
});
