import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { enterConsole, letIn } from '../../support/console-page.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { openWarehouse } from '../../support/warehouse.ts';

const folder = tempFolder();
/** Of a warehouse without a row. */
const data = join(folder, 'data');
beforeAll(async () => {
  const warehouse = await openWarehouse(join(data, 'warehouse.duckdb'));
  await warehouse.snapshot(join(data, 'snapshot.duckdb'), 0o600);
  await warehouse.close();
});

/** The screen in a browser. */
async function openScreen(hash = ''): Promise<{
  page: Page;
  complaints: string[];
  ask(sql: string): Promise<void>;
  open(hash: string): Promise<void>;
  write(sql: string): Promise<void>;
}> {
  const served = await openConsoleHere(data);
  const { page, complaints } = await enterConsole(await openChromium(), served);
  const editor = page.getByRole('textbox', { name: 'SQL' });
  const open = async (to: string) => {
    await page.goto(`${served.url}/sql${to}`);
    await editor.waitFor();
  };
  await open(hash);
  const write = async (sql: string) => {
    await editor.focus();
    for (const key of ['Control+A', 'Delete']) await page.keyboard.press(key);
    await page.keyboard.insertText(sql);
    await page.keyboard.press('Escape');
  };
  return {
    page,
    write,
    complaints,
    open,
    async ask(sql) {
      await write(sql);
      await page.keyboard.press('Control+Enter');
      await page.locator('#sql-result', { hasText: /\d row|No whole/ }).waitFor();
    },
  };
}

test.skipIf(!hasChromium)('a query is written, completed, run, drawn, kept and linked without a mouse', async () => {
  const { page, complaints, open } = await openScreen();
  await page.keyboard.type('SELECT name FROM sync.ta');
  await page.locator('.cm-tooltip-autocomplete').waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+A');
  await page.keyboard.type(`SELECT DATE '2025-03-28' + i::INT AS day, [5, 7, NULL, 6][i + 1] AS hrv FROM range(4) t(i`);
  await page.keyboard.press('Control+Enter');
  await page.getByRole('heading', { name: '4 rows' }).waitFor();
  const cells = await page.locator('.sql-rows tbody td').allTextContents();
  expect(cells).toEqual(['2025-03-28', '5', '2025-03-29', '7', '2025-03-30', 'NULL', '2025-03-31', '6']);

  const line = page.locator('path.sql-line');
  expect(
    await line.evaluate(path => (path as unknown as { __data__: { at: string; y: number }[] }).__data__.map(({ at, y }) => [at, y])),
  ).toEqual([
    ['2025-03-28', 5],
    ['2025-03-29', 7],
    ['2025-03-31', 6],
  ]);
  // Nothing is joined over the missing day.
  expect((await line.getAttribute('d'))?.match(/M/g)).toHaveLength(2);
  expect(await page.locator('figcaption').textContent()).toBe(
    'hrv: 3 values, lowest 5 (2025-03-28), median 6, highest 7 (2025-03-29). 1 row has no value and is not drawn. The line is broken where values are missing.',
  );
  await page.getByRole('button', { name: 'SQL of hrv by day' }).click();
  await page.getByRole('link', { name: 'Ask it, or another like it' }).click();
  await page.getByRole('button', { name: 'Points' }).click();
  const link = page.url();
  expect(new URLSearchParams(new URL(link).hash.slice(1)).get('chart')).toBe('points');

  await page.reload();
  await page.getByRole('textbox', { name: 'SQL' }).waitFor();
  await expect.poll(() => page.locator('.cm-content').textContent()).toContain('AS hrv FROM range(4) t(i)');
  await page.keyboard.press('Control+Enter');
  await page.locator('path.sql-dots').waitFor();
  await open('#q=SELECT+1');
  await expect.poll(() => page.locator('.cm-content').textContent()).toBe('SELECT 1');
  await page.getByRole('button', { name: 'History' }).click();
  await page.getByRole('button', { name: /AS hrv FROM range\(4\)/ }).click();
  await expect.poll(() => page.locator('.cm-content').textContent()).toContain('AS hrv');
  expect(complaints).toEqual([]);
});

test.skipIf(!hasChromium)('100,000 rows scroll with few of them drawn, and a cut is said at table, chart and file', async () => {
  const { page, complaints, ask } = await openScreen();
  await ask('SELECT range AS n, range * 2 AS twice FROM range(100001)');
  await page.getByRole('heading', { name: /100.000 rows, cut/ }).waitFor();
  expect(await page.locator('.sql-cut').textContent()).toMatch(/^Cut: the first 100.000 rows of a result that has more\.$/);
  expect(await page.locator('figcaption').textContent()).toMatch(
    /^Of the first 100.000 rows only: the result was cut\. twice: 100000 values/,
  );
  await page.locator('.sql-rows').evaluate(room => {
    room.scrollTop = room.scrollHeight;
  });
  await page.getByRole('gridcell', { name: '99999', exact: true }).waitFor();
  expect(await page.locator('.sql-rows tbody tr').count()).toBeLessThan(60);
  await page.getByRole('grid').focus();
  await page.keyboard.press('Control+Home');
  await page.keyboard.press('ArrowDown');
  await page.locator('.sql-whole', { hasText: 'Row 2, n: 1' }).waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'CSV of the first' }).click()]);
  expect(download.suggestedFilename()).toBe('result-first-100000-rows.csv');
  expect(complaints).toEqual([]);
});

test.skipIf(!hasChromium)('texts stay texts, what cannot be drawn and errors are told, and Escape cancels', async () => {
  const { page, complaints, ask, write } = await openScreen();
  // What is refused on purpose.
  onTestFinished(() => expect(complaints.filter(text => !/status of 4\d\d/.test(text))).toEqual([]));
  await ask(`SELECT '</script><img src=x onerror=alert(1)>' AS "<b>a</b>", '=1+1' AS b UNION ALL SELECT NULL, '' ORDER BY 2 DESC`);
  expect(await page.locator('.sql-rows tbody td').allTextContents()).toEqual(['</script><img src=x onerror=alert(1)>', '=1+1', 'NULL', '']);
  expect(await page.locator('.sql-rows th').first().textContent()).toBe('<b>a</b> VARCHAR');
  expect(await page.locator('main img, main b').count()).toBe(0);
  await ask(`SELECT i AS n, ['7', 'inf', 'nan', NULL, '9'][i]::DOUBLE AS v FROM range(1, 6) t(i)`);
  expect(await page.locator('figcaption').textContent()).toBe(
    'v: 2 values, lowest 7 (n 1), median 8, highest 9 (n 5). 1 row has no value and is not drawn. 2 rows have a value without a place on an axis, as nan or inf, and are not drawn.',
  );
  await ask('SELECT nothing FROM daily');
  expect(await page.locator('.sql-result [role=alert]').textContent()).toMatch(/Referenced column "nothing" not found.*line 1/);
  await write('SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('button', { name: 'Cancel' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByText('The query was cancelled.').waitFor();
});

test.skipIf(!hasChromium)('who looks at another screen, or comes in again, finds what they had written', async () => {
  const served = await openConsoleHere(data);
  const { page, open } = await enterConsole(await openChromium(), served);
  const text = () => page.locator('.cm-content').textContent();
  await open('/sql#q=SELECT+1');
  await page.getByRole('textbox', { name: 'SQL' }).focus();
  await page.keyboard.press('Control+End');
  await page.keyboard.insertText(' AS not_run_yet');
  await expect.poll(text).toBe('SELECT 1 AS not_run_yet');
  await page.getByRole('link', { name: 'Coverage' }).click();
  await page.getByRole('heading', { name: 'Coverage' }).waitFor();
  await page.goBack();
  await expect.poll(text).toBe('SELECT 1 AS not_run_yet');
  await page.getByRole('link', { name: 'Coverage' }).click();
  await page.getByRole('link', { name: 'SQL' }).click();
  await expect.poll(text).toBe('SELECT 1 AS not_run_yet');
  await page.context().clearCookies();
  await page.getByRole('link', { name: 'Coverage' }).click();
  await page.getByRole('heading', { name: 'This browser has no session.' }).waitFor();
  await page.goBack();
  await letIn(page.context(), served, { role: 'reader', person: null });
  await page.evaluate("new BroadcastChannel('ringneck-live').postMessage({ kind: 'account' })");
  await expect.poll(text).toBe('SELECT 1 AS not_run_yet');
});

test.skipIf(!hasChromium)('who comes in for somebody else reads no queries of before, who comes in again does', async () => {
  const served = await openConsoleHere(data);
  const { page, open } = await enterConsole(await openChromium(), served);
  const history = () => page.evaluate('localStorage.getItem("ringneck-sql-history")');
  await open('/sql#q=SELECT+1');
  await page.getByRole('button', { name: /^Run/ }).click();
  await page.locator('#sql-result', { hasText: '1 row' }).waitFor();
  await letIn(page.context(), served, { role: 'reader', person: null });
  await open('/sql');
  expect(await history()).toContain('SELECT 1');
  await letIn(page.context(), served, { role: 'operator', person: null });
  await open('/sql');
  expect(await history()).toBe(null);
});

test.skipIf(!hasChromium)('what there is to ask is found by a word, and put into the editor', async () => {
  const { page, complaints } = await openScreen();
  expect(await page.locator('.cm-placeholder').textContent()).toMatch(/^SELECT … FROM daily/);
  await page.getByRole('region', { name: 'Examples' }).waitFor();
  await page.getByRole('searchbox', { name: 'Find a table or a column' }).fill('average_hrv');
  await page.getByRole('button', { name: /^nights/ }).click();
  expect(await page.locator('.sql-found').first().textContent()).toMatch(/^average_hrv ms/);
  await page.getByRole('button', { name: 'Put a first query of nights into the editor' }).click();
  await expect.poll(() => page.locator('.cm-content').textContent()).toMatch(/FROM nights/);
  await page.getByRole('button', { name: 'Examples' }).click();
  await page.locator('.sql-menu-list').getByRole('button', { name: 'Where is the resting heart rate going?' }).click();
  await expect.poll(() => page.locator('.cm-content').textContent()).toMatch(/^PIVOT/);
  // Who has not asked yet has them before their eyes.
  await page.getByRole('region', { name: 'Examples' }).getByRole('button').first().click();
  await expect.poll(() => page.locator('.cm-content').textContent()).not.toMatch(/^PIVOT/);
  expect(complaints).toEqual([]);
});
