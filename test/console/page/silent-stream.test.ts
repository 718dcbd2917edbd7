import { expect, test } from 'vitest';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { enterConsole } from '../../support/console-page.ts';
import { placePeople, sleepOf } from '../people-by-hand.ts';

const night = sleepOf('2025-01-04', '2025-01-04T00:30:00+01:00', '2025-01-04T08:30:00+01:00', { total_sleep_duration: 25_200 });

/** A stream over a link that may be cut: it says what the test says, and nothing when it is silent. */
const STREAM = `
  window.streams = [];
  window.EventSource = class extends EventTarget {
    static CLOSED = 2;
    readyState = 0;
    constructor() {
      super();
      window.streams.push(this);
    }
    close() {
      this.readyState = 2;
    }
    answer() {
      this.readyState = 1;
      this.onopen();
    }
  };`;

test.skipIf(!hasChromium)('a stream that has gone silent is not called up to date, and is opened anew', async () => {
  const served = await openConsoleHere(await placePeople({ ann: { sleep: [night] } }));
  const { page, complaints, open } = await enterConsole(await openChromium(), served, { locale: 'en-GB' });
  await page.clock.install();
  await page.addInitScript(STREAM);
  await open('/');
  const fresh = page.locator('.fresh');
  const streams = () => page.evaluate<number[]>('streams.map(({ readyState }) => readyState)');
  await expect.poll(streams).toEqual([0]);
  await page.evaluate('streams[0].answer()');
  const lost = /Connection lost, trying again\.$/;
  for (let n = 0; n < 4; n++) {
    await page.clock.runFor(30_000);
    await page.evaluate("streams[0].dispatchEvent(new Event('ping'))");
  }
  expect(await streams()).toEqual([1]);
  expect(await fresh.innerText()).not.toMatch(lost);
  await page.clock.runFor(50_000);
  await expect.poll(() => fresh.innerText()).toMatch(lost);
  expect(await streams()).toEqual([2, 0]);
  // The next one is not even answered: it is given up as well.
  await page.clock.runFor(50_000);
  expect(await streams()).toEqual([2, 2, 0]);
  const asked = page.waitForRequest('**/api/people?*');
  await page.evaluate('streams[2].answer()');
  await expect.poll(() => fresh.innerText()).not.toMatch(lost);
  // What was published meanwhile is asked for.
  await asked;
  expect(complaints).toEqual([]);
});

test.skipIf(!hasChromium)(
  'a screen whose code did not come is loaded once the link is back, of another version with its page',
  async () => {
    const served = await openConsoleHere(await placePeople({ ann: { sleep: [night] } }));
    const { page, open } = await enterConsole(await openChromium(), served);
    await open('/');
    const failed = page.getByText('This screen could not be loaded.');
    const coverage = page.getByRole('heading', { name: 'People by days' });
    await page.route('**/assets/coverage*.js', route => route.abort());
    await page.getByRole('link', { name: 'Coverage' }).click();
    await failed.waitFor();
    await page.unroute('**/assets/coverage*.js');
    // As the page says it to itself when it follows again.
    await page.evaluate("new BroadcastChannel('ringneck-live').postMessage({ kind: 'snapshot' })");
    await coverage.waitFor();

    await page.route('**/assets/sql*.js', route => route.fulfill({ status: 404 }));
    await page.getByRole('link', { name: 'SQL' }).click();
    await failed.waitFor();
    const loaded = page.waitForEvent('domcontentloaded');
    await page.getByRole('button', { name: 'Try again' }).click();
    await loaded;
    expect(page.url()).toBe(`${served.url}/sql`);
  },
);
