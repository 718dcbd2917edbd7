import { expect, test } from 'vitest';
import { violationsOf } from '../../support/axe.ts';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { enterConsole } from '../../support/console-page.ts';
import { placePeople, sleepOf } from '../people-by-hand.ts';

const night = sleepOf('2025-01-04', '2025-01-04T00:30:00+01:00', '2025-01-04T08:30:00+01:00', { total_sleep_duration: 25_200 });

test.skipIf(!hasChromium)('who dictates turns the keys of one letter off, and on again', async () => {
  const served = await openConsoleHere(await placePeople({ ann: { sleep: [night] } }));
  const { page, complaints, open } = await enterConsole(await openChromium(), served);
  const theme = () => page.evaluate('document.documentElement.dataset.theme');
  const range = () => new URL(page.url()).searchParams.get('range');
  const turn = async () => {
    await page.getByRole('button', { name: 'Keys' }).click();
    await page.getByRole('checkbox', { name: /^Letters and signs/ }).press('Space');
    expect(await violationsOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Close' }).click();
  };
  await open('/people/ann');
  await turn();
  await page.reload();
  await page.getByRole('heading', { name: 'Trends' }).waitFor();
  for (const key of ['t', ']', 'g', 'c']) await page.keyboard.press(key);
  await page.keyboard.press('?');
  expect([await theme(), range(), await page.getByRole('dialog').count()]).toEqual([undefined, null, 0]);
  expect(new URL(page.url()).pathname).toBe('/people/ann');
  await turn();
  await page.keyboard.press(']');
  expect(range()).toBe('180d');
  await page.keyboard.press('t');
  expect(await theme()).toBe('light');
  expect(complaints).toEqual([]);
});

test.skipIf(!hasChromium)('a letter after g counts where the screen has changed in between', async () => {
  const served = await openConsoleHere(await placePeople({ ann: { sleep: [night] } }));
  const { page, complaints, open } = await enterConsole(await openChromium(), served);
  await open('/people/ann/raster');
  await page.evaluate(`(async () => {
    const press = key => dispatchEvent(new KeyboardEvent('keydown', { key }));
    const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    document.querySelector('main a[href$="/people/ann"]').click();
    press('g');
    await frame();
    await frame();
    press('c');
  })()`);
  await expect.poll(() => new URL(page.url()).pathname).toBe('/coverage');
  expect(complaints).toEqual([]);
});
