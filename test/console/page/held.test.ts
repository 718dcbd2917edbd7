import { join } from 'node:path';
import { expect, test } from 'vitest';
import { momentText } from '../../../src/console/page/parts/format.ts';
import { violationsOf } from '../../support/axe.ts';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { letIn } from '../../support/console-page.ts';
import { openWarehouse, withDuckDB } from '../../support/warehouse.ts';
import { placePeople, sleepOf } from '../people-by-hand.ts';

const night = (day: string) =>
  sleepOf(day, `${day}T00:30:00+01:00`, `${day}T08:30:00+01:00`, { average_hrv: 50, total_sleep_duration: 25_200 });
const NOW = Date.UTC(2025, 0, 4, 13, 45);

/** Stores more in the warehouse and publishes it. */
async function publish(data: string, statements: readonly string[]): Promise<void> {
  const path = join(data, 'warehouse.duckdb');
  await withDuckDB(path, async connection => {
    for (const sql of statements) await connection.run(sql);
  });
  const warehouse = await openWarehouse(path);
  await warehouse.snapshot(join(data, 'snapshot.duckdb'), 0o600);
  await warehouse.close();
}

const event = (second: number, kind: string) =>
  `INSERT INTO sync.events (received_at, settled_at, user_id, event_type, data_type, outcome) VALUES
     ('2025-01-04 09:00:${second}', '2025-01-04 09:00:${second}.5', 'ann', 'create', '${kind}', 'stored')`;
const account = (name: string) => `INSERT INTO sync.accounts (user_id, state, since) VALUES ('${name}', 'active', '2025-01-01')`;

test.skipIf(!hasChromium)('new rows wait behind a button, and what is read neither moves nor loses the focus', async () => {
  const data = await placePeople({ ann: { sleep: [night('2025-01-04')] }, ben: { sleep: [night('2025-01-03')] } });
  await publish(data, [event(10, 'sleep'), event(11, 'daily_sleep')]);
  const served = await openConsoleHere(data, { now: () => NOW });
  const context = await (await openChromium()).newContext({ viewport: { width: 1440, height: 900 } });
  await letIn(context, served, { role: 'reader', person: null });
  const complaints: string[] = [];
  const open = async (path: string) => {
    const page = await context.newPage();
    page.on('pageerror', error => complaints.push(error.message));
    await page.goto(`${served.url}${path}`);
    return page;
  };
  const operations = await open('/operations');
  const events = operations.getByRole('region', { name: 'Events' });
  const kinds = () => events.locator('tbody tr td:nth-child(3)').allTextContents();
  await events.waitFor();
  const people = await open('/');
  const names = () => people.locator('.people .name').allTextContents();
  await people.getByRole('link', { name: 'ann', exact: true }).focus();
  expect([await kinds(), await names()]).toEqual([
    ['create daily_sleep', 'create sleep'],
    ['ben', 'ann'],
  ]);
  const boxOf = () => people.locator('.people').boundingBox();
  const before = await boxOf();
  await publish(data, [
    ...[event(12, 'workout'), event(13, 'session'), event(14, 'tag'), account('zoe')],
    "UPDATE sync.events SET outcome = 'unchanged' WHERE data_type = 'daily_sleep'",
  ]);
  const more = operations.getByRole('button', { name: '3 new events' });
  await more.waitFor({ timeout: 15_000 });
  // What is there is brought up to date in its place.
  expect(await events.locator('tbody tr td:nth-child(4)').allTextContents()).toEqual(['unchanged', 'stored']);
  expect(await kinds()).toEqual(['create daily_sleep', 'create sleep']);
  await operations.getByText('There are new events.').waitFor();
  expect(await violationsOf(operations)).toEqual([]);
  await more.press('Enter');
  await expect.poll(kinds).toEqual(['create tag', 'create session', 'create workout', 'create daily_sleep', 'create sleep']);
  await expect.poll(() => operations.evaluate('document.activeElement.getAttribute("aria-label")')).toBe('Events');
  expect(await operations.getByRole('button', { name: /new/ }).count()).toBe(0);
  const one = people.getByRole('button', { name: '1 new people' });
  await one.waitFor({ timeout: 15_000 });
  expect([await names(), await boxOf(), await people.evaluate('document.activeElement.textContent')]).toEqual([
    ['ben', 'ann'],
    before,
    'ann',
  ]);
  expect(await violationsOf(people)).toEqual([]);
  await one.click();
  await expect.poll(names).toEqual(['zoe', 'ben', 'ann']);
  await expect.poll(() => people.evaluate('document.activeElement.textContent')).toBe('zoe');
  // Who is erased waits for nobody.
  await publish(data, ["UPDATE sync.accounts SET state = 'removed' WHERE user_id = 'ben'"]);
  await expect.poll(names, { timeout: 15_000 }).toEqual(['zoe', 'ann']);
  expect(complaints).toEqual([]);
});

test('a moment of another day is told with its day', () => {
  const at = Date.UTC(2026, 10, 28, 13, 2, 9) / 1000;
  expect(momentText(at, Date.UTC(2026, 10, 28, 23, 59) / 1000)).toBe('13:02:09 UTC');
  expect(momentText(at, Date.UTC(2026, 10, 29) / 1000)).toBe('28 Nov 13:02:09 UTC');
  expect(momentText(at, Date.UTC(2027, 0, 1) / 1000)).toBe('28 Nov 2026 13:02:09 UTC');
});
