import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { violationsOf } from '../../support/axe.ts';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { enterConsole } from '../../support/console-page.ts';
import { openHarness } from '../../support/harness.ts';
import { startLiteralService } from '../../support/literal-service.ts';
import { night } from '../../support/nights.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const march = { users: ['ada', 'ben'], collections: ['sleep'], from: '2025-03-08', to: '2025-03-09' };

test.skipIf(!hasChromium)('Overview shows what is being read and how far it is, until it has ended', async () => {
  const service = await startLiteralService('sleep');
  onTestFinished(() => service.close());
  const data = join(tempFolder(), 'under-way');
  const harness = await openHarness(data, service.url);
  await harness.keep([
    { name: 'ada', token: 'a' },
    { name: 'ben', token: 'b' },
  ]);
  await harness.commands.freshSnapshot({});
  const served = await openConsoleHere(data, { commands: harness.commands });
  const { page, complaints, open } = await enterConsole(await openChromium(), served, { viewport: { width: 390, height: 844 } });
  await open('/');
  const fresh = () => page.locator('.fresh').innerText();
  expect([await page.locator('.under-way').count(), (await fresh()).split(',')[0]]).toEqual([0, 'Up to date']);

  const held = new Map<string, () => void>();
  onTestFinished(() => held.forEach(release => void release()));
  service.on('/v2/usercollection/sleep', async ({ headers }) => {
    const token = String(headers.authorization);
    await new Promise<void>(resolve => held.set(token, resolve));
    return { json: { data: token.endsWith(' a') ? [night('s-1', '2025-03-08')] : [], next_token: null } };
  });
  const doing = harness.backfill(march);
  const line = page.locator('.under-way li');
  const range = 'The backfill of 2025-03-08 to 2025-03-09:';
  const shown = 'What is new is shown within ten minutes.';
  await expect.poll(() => line.allInnerTexts(), { timeout: 10_000 }).toEqual([`${range} 0 of 2 windows read, 0 documents. ${shown}`]);
  await expect.poll(fresh, { timeout: 10_000 }).toMatch(/^More is being read, data of /);
  await expect.poll(() => held.size).toBe(2);
  held.get('Bearer a')?.();
  await expect.poll(() => line.allInnerTexts(), { timeout: 10_000 }).toEqual([`${range} 1 of 2 windows read, 1 document. ${shown}`]);
  expect(await page.locator('.under-way progress').evaluate(({ value, max }: { value: number; max: number }) => [value, max])).toEqual([
    1, 2,
  ]);
  expect(await violationsOf(page)).toEqual([]);
  held.get('Bearer b')?.();
  await doing;
  await expect.poll(() => line.count(), { timeout: 10_000 }).toBe(0);
  await expect.poll(fresh, { timeout: 10_000 }).toMatch(/^Up to date, /);
  expect(complaints).toEqual([]);
});
