import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { violationsOf } from '../../support/axe.ts';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { openHarness } from '../../support/harness.ts';
import { startLiteralService } from '../../support/literal-service.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const folder = tempFolder();

async function enter(page: Page, link: string, url: string): Promise<void> {
  await page.goto(link);
  await page.waitForURL(at => !at.pathname.endsWith('/enter'));
  await page.goto(`${url}/operations`);
}

test.skipIf(!hasChromium)('an operator sees who is behind and resumes them, a reader only sees it; both follow what happens', async () => {
  const service = await startLiteralService('sleep');
  onTestFinished(() => service.close());
  const data = join(folder, 'operations');
  const harness = await openHarness(data, service.url);
  await harness.keep([
    { name: 'ada', token: 'a' },
    { name: 'ben', token: 'b' },
  ]);
  await harness.commands.pauseAccount({ name: 'ada' });
  await harness.commands.snapshot({}, { signal: new AbortController().signal });
  const none = { failed: 0, active: 0, waiting: 0, delayed: 0 };
  const counts = { collect: { ...none, delayed: 2 }, events: { ...none, delayed: 1 }, schedules: { ...none, delayed: 3 } };
  const commands = { ...harness.commands, queueReport: async () => ({ counts, jobs: [] }) };
  const served = await openConsoleHere(data, { commands });
  const browser = await openChromium();
  const open = async (role: 'operator' | 'reader') => {
    const page = await (await browser.newContext()).newPage();
    page.on('pageerror', error => complaints.push(error.message));
    await enter(page, served.createLink({ role, person: null }), served.url);
    return page;
  };
  const complaints: string[] = [];
  const reader = await open('reader');
  await reader.getByText('1 person needs a hand.').waitFor();
  // What the schedules will do next was not put off.
  expect(await reader.getByText('Put off: tried again later').locator('..').innerText()).toMatch(/later\s+3$/);
  expect(await reader.getByRole('button', { name: /Resume|Read what is missing|End/ }).count()).toBe(0);
  const operator = await open('operator');
  await operator.getByRole('button', { name: 'Resume ada' }).waitFor();
  expect(await violationsOf(operator)).toEqual([]);
  await operator.getByRole('button', { name: 'Resume ada' }).click();
  const dialog = operator.getByRole('dialog', { name: 'Resume: ada' });
  await dialog.getByText('ada is read again, what is missing too.').waitFor();
  await dialog.getByRole('button', { name: 'Resume', exact: true }).click();
  await dialog.getByText('ada is active.').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).click();
  // The other page hears of it by itself.
  await reader.getByText('Nobody needs a hand.').waitFor({ timeout: 20_000 });
  await operator.getByText('Nobody needs a hand.').waitFor();
  // Whose session is ended sees that soon, without pressing anything.
  const other = await open('reader');
  await other.getByText('Nobody needs a hand.').waitFor();
  await operator.reload();
  await operator.getByRole('button', { name: 'End the session of reader' }).last().click();
  await other.getByRole('heading', { name: 'The session is over.' }).waitFor({ timeout: 20_000 });
  await served.close();
  await reader.getByText('Connection lost, trying again.').waitFor();
  expect(complaints).toEqual([]);
});
