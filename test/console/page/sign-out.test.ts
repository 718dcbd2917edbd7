import { expect, test } from 'vitest';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { letIn } from '../../support/console-page.ts';
import { placePeople, sleepOf } from '../people-by-hand.ts';

const night = sleepOf('2025-01-04', '2025-01-04T00:30:00+01:00', '2025-01-04T08:30:00+01:00', { total_sleep_duration: 25_200 });

test.skipIf(!hasChromium)('a person who leaves the machine to others signs out, and no tab shows their nights any more', async () => {
  const served = await openConsoleHere(await placePeople({ ann: { sleep: [night] } }));
  const context = await (await openChromium()).newContext({ viewport: { width: 390, height: 800 } });
  await letIn(context, served, { role: 'person', person: 'ann' });
  const [first, second] = [await context.newPage(), await context.newPage()];
  for (const page of [first, second]) {
    await page.goto(`${served.url}/people/ann`);
    await page.getByRole('heading', { name: 'ann · Saturday 4 January' }).waitFor();
  }
  await first.getByRole('button', { name: 'Sign out' }).press('Enter');
  for (const page of [first, second]) await page.getByRole('heading', { name: 'The session is over.' }).waitFor();
  expect(await second.getByText('ann').count()).toBe(0);
  const [cookie] = await context.cookies();
  const { status } = await served.send('GET', '/api/session', { headers: { cookie: `${cookie?.name}=${cookie?.value}` } });
  expect(status).toBe(401);
});
