import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { violationsOf } from '../../support/axe.ts';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { enterConsole, letIn } from '../../support/console-page.ts';
import { openHarness } from '../../support/harness.ts';
import { startLiteralService } from '../../support/literal-service.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const folder = tempFolder();

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
    const looking = await enterConsole(browser, served, { role });
    looking.page.on('pageerror', error => complaints.push(error.message));
    await looking.open('/operations');
    return looking.page;
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
  await dialog.getByRole('button', { name: 'Resume', exact: true }).press('Enter');
  await dialog.getByText('ada is active.').waitFor();
  expect(await operator.evaluate('document.activeElement.textContent')).toBe('Close');
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
  // On a phone a run that has all there is to say stays within its card.
  const run = { id: 'r', kind: 'backfill', from: '2025-01-01', to: '2025-12-31', started: 1_760_000_000, waits_for: null };
  const ended = Array.from({ length: 12 }, (_, n) => ({
    ...run,
    id: `r-${n}`,
    planned: 1,
    done: 1,
    failed: 0,
    state: 'complete',
    is_active: false,
  }));
  const runs = [{ ...run, planned: 1234, done: 1000, failed: 12, state: 'interrupted', is_active: true }, ...ended];
  await operator.route('**/api/runs', route => route.fulfill({ json: { runs } }));
  const action = { name: 'invite', label: 'Make a sign-in link', users: ['ada'] };
  const texts = {
    cause: 'The service refuses the token (401).',
    helps: 'A new sign-in by the person. What is missing is then read by itself.',
  };
  await operator.route('**/api/operations', async route => {
    const answer = await (await route.fetch()).json();
    const job = { queue: 'events', id: 'e', state: 'failed', at: '2025-10-09T00:00:00Z', attempts: 3, reason: 'it takes too long' };
    const queue = { counts: { ...counts, events: { ...none, failed: 70 } }, jobs: [job] };
    await route.fulfill({ json: { ...answer, queue, behind: [{ id: 'ada', since: 1_760_000_000, state: 'parked', ...texts, action }] } });
  });
  await operator.setViewportSize({ width: 390, height: 800 });
  await operator.reload();
  const pressed = await operator.getByRole('button', { name: 'Make a sign-in link ada' }).boundingBox();
  expect((pressed?.x ?? 0) + (pressed?.width ?? 999)).toBeLessThan(390);
  expect(await violationsOf(operator)).toEqual([]);
  // What a list leaves out is said.
  await operator.getByText('69 more wait or have failed than are listed.').waitFor();
  await operator.getByText('The first 12 of them; sync.runs has all.').waitFor();
  const stop = operator.getByRole('button', { name: 'Stop… backfill' });
  await stop.waitFor();
  const card = operator.locator('section.card', { has: stop });
  const [table, whole] = await Promise.all([card.locator('table').boundingBox(), card.boundingBox()]);
  expect((table?.x ?? 0) + (table?.width ?? 999)).toBeLessThan((whole?.x ?? 0) + (whole?.width ?? 0));
  await served.close();
  await reader.getByText('Connection lost, trying again.').waitFor();
  expect(complaints).toEqual([]);
});

test.skipIf(!hasChromium)(
  'when who is helped leaves the list the keyboard goes on at the next one; a filter says that nothing is like it',
  async () => {
    const data = join(folder, 'focus');
    const harness = await openHarness(data, 'http://127.0.0.1:9');
    const names = ['ada', 'ben', 'cleo'];
    await harness.keep(names.map(name => ({ name, token: name })));
    for (const name of names) await harness.commands.pauseAccount({ name });
    await harness.commands.snapshot({}, { signal: new AbortController().signal });
    const served = await openConsoleHere(data, { commands: harness.commands });
    const { page, open } = await enterConsole(await openChromium(), served, { role: 'operator' });
    await open('/operations');
    const resume = async (name: string) => {
      await page.getByRole('button', { name: `Resume ${name}` }).press('Enter');
      const dialog = page.getByRole('dialog', { name: `Resume: ${name}` });
      await dialog.getByRole('button', { name: 'Resume', exact: true }).press('Enter');
      await dialog.getByText(`${name} is active.`).waitFor();
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: `Resume ${name}` }).waitFor({ state: 'detached' });
    };
    const focused = () => page.evaluate('document.activeElement.textContent');
    await resume('ben');
    await expect.poll(focused).toBe('cleo');
    await resume('cleo');
    await expect.poll(focused).toBe('ada');
    await resume('ada');
    await page.getByText('Nobody needs a hand.').waitFor();
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('main');
    await page.getByText('No event has come yet.').waitFor();
    await page.getByRole('searchbox', { name: 'Person' }).fill('ad');
    await page.keyboard.press('Enter');
    await page.getByText('No event is like that.').waitFor();
  },
);

test.skipIf(!hasChromium)('a session that is ended in one tab is over in another at once, though its stream tells nothing', async () => {
  const data = join(folder, 'tabs');
  const harness = await openHarness(data, 'http://127.0.0.1:9');
  const served = await openConsoleHere(data, { commands: harness.commands });
  const context = await (await openChromium()).newContext();
  await letIn(context, served, { role: 'operator', person: null });
  // Neither tab hears of the server by itself: the stream begins and is silent.
  await context.route('**/api/stream', () => undefined);
  const [first, second] = [await context.newPage(), await context.newPage()];
  await first.goto(`${served.url}/operations`);
  await second.goto(`${served.url}/coverage`);
  await second.getByRole('heading', { name: 'Coverage' }).waitFor();
  await first.getByRole('button', { name: 'End the session of operator' }).click();
  for (const page of [first, second]) await page.getByRole('heading', { name: 'The session is over.' }).waitFor();
  // Each asks once more, and then is silent.
  const asked: string[] = [];
  context.on('request', ({ url }) => asked.push(url()));
  await second.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))');
  expect(asked).toEqual([]);
});
