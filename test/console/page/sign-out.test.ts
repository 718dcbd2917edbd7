import type { Route } from 'playwright-core';
import { expect, test } from 'vitest';
import { violationsOf } from '../../support/axe.ts';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { enterConsole, letIn } from '../../support/console-page.ts';
import { placePeople, sleepOf } from '../people-by-hand.ts';

const night = sleepOf('2025-01-04', '2025-01-04T00:30:00+01:00', '2025-01-04T08:30:00+01:00', { total_sleep_duration: 25_200 });

test.skipIf(!hasChromium)(
  'a person who leaves the machine to others signs out, and no tab shows their nights or queries any more',
  async () => {
    const served = await openConsoleHere(await placePeople({ ann: { sleep: [night] } }));
    const context = await (await openChromium()).newContext({ viewport: { width: 390, height: 800 } });
    await letIn(context, served, { role: 'person', person: 'ann' });
    const [first, second] = [await context.newPage(), await context.newPage()];
    for (const page of [first, second]) {
      await page.goto(`${served.url}/people/ann`);
      await page.getByRole('heading', { name: 'ann · Saturday 4 January' }).waitFor();
    }
    await first.goto(`${served.url}/sql#q=${encodeURIComponent('FROM nights')}`);
    await first.getByRole('button', { name: 'Run' }).click();
    await first.getByText('1 row').first().waitFor();
    expect(await first.evaluate('localStorage.getItem("ringneck-sql-history")')).toContain('FROM nights');
    await first.getByRole('button', { name: 'Sign out' }).press('Enter');
    for (const page of [first, second]) await page.getByRole('heading', { name: 'The session is over.' }).waitFor();
    expect(await second.getByText('ann').count()).toBe(0);
    expect(await second.evaluate('localStorage.getItem("ringneck-sql-history")')).toBe(null);
    const [cookie] = await context.cookies();
    const { status } = await served.send('GET', '/api/session', { headers: { cookie: `${cookie?.name}=${cookie?.value}` } });
    expect(status).toBe(401);
  },
);

test.skipIf(!hasChromium)('who cannot be signed out is told so, and is by the next press', async () => {
  const served = await openConsoleHere(await placePeople({ ann: { sleep: [night] } }));
  const { page, open } = await enterConsole(await openChromium(), served, { role: 'person', person: 'ann' });
  const press = () => page.getByRole('button', { name: 'Sign out' }).click();
  const alert = page.getByRole('alert');
  await open('/people/ann');
  const refuse = (route: Route) => (route.request().method() === 'DELETE' ? route.abort() : route.continue());
  await page.route('**/api/session', refuse);
  await press();
  expect(await alert.innerText()).toBe('You are still signed in. The console does not answer. Is ringneck up running?');
  expect(await violationsOf(page)).toEqual([]);
  await page.unroute('**/api/session', refuse);
  await press();
  await page.getByRole('heading', { name: 'The session is over.' }).waitFor();
  expect(await alert.count()).toBe(0);
});
