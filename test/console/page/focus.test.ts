import { expect, test } from 'vitest';
import { violationsOf } from '../../support/axe.ts';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { drawn, enterConsole } from '../../support/console-page.ts';
import { placePeople, sleepOf } from '../people-by-hand.ts';

const day = (n: number) => new Date(Date.UTC(2025, 0, n)).toISOString().slice(0, 10);
const NIGHTS = [1, 2, 3].map(n => sleepOf(day(n), `${day(n)}T00:30:00Z`, `${day(n)}T01:30:00Z`, { total_sleep_duration: 3000 }));
const PEOPLE = Object.fromEntries(Array.from({ length: 61 }, (_, at) => [`p${10 + at}`, { sleep: at ? [] : NIGHTS }]));

async function look() {
  const served = await openConsoleHere(await placePeople(PEOPLE), { now: () => Date.UTC(2025, 0, 3, 12) });
  const looking = await enterConsole(await openChromium(), served, { role: 'operator' });
  const { page } = looking;
  const focused = (): Promise<string> =>
    page.evaluate("document.activeElement.ariaLabel ?? document.activeElement.innerText.split('\\n')[0]");
  const press = async (name: string) => {
    const button = page.getByRole('button', { name, exact: true });
    await button.focus();
    await page.keyboard.press('Enter');
    await drawn(page);
    return button;
  };
  return { ...looking, focused, press };
}

test.skipIf(!hasChromium)(
  'a step to the last day there is leaves the keyboard where it was, and a further press does nothing',
  async () => {
    const { page, complaints, open, focused, press } = await look();
    await open('/people/p10?day=2025-01-02');
    for (const [name, heading, address] of [
      ['The day after', 'p10 · Friday 3 January', '?day=2025-01-03'],
      ['The day before', 'p10 · Thursday 2 January', '?day=2025-01-02'],
      ['Newest', 'p10 · Friday 3 January', ''],
    ] as const) {
      const button = await press(name);
      await page.getByRole('heading', { name: heading }).waitFor();
      expect(await focused(), name).toBe(name);
      expect(new URL(page.url()).search).toBe(address);
      expect(await button.isDisabled(), name).toBe(name !== 'The day before');
      expect(await violationsOf(page), name).toEqual([]);
    }
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'The day after' }).focus();
    await page.keyboard.press('Enter');
    expect(new URL(page.url()).search).toBe('');
    expect(complaints).toEqual([]);
  },
);

test.skipIf(!hasChromium)('on the last page of people, of a matrix and of a table the keyboard stays at the button', async () => {
  const { page, complaints, open, focused, press } = await look();
  for (const path of ['/?sort=name', '/coverage?sort=name&from=2024-12-01&to=2025-01-03']) {
    await open(path);
    for (const [name, number] of [
      ['After', '2'],
      ['Before', '1'],
    ] as const) {
      const button = await press(name);
      await page.getByText(`Page ${number} of 2`).first().waitFor();
      await expect.poll(() => button.isDisabled(), { message: `${path} ${name}` }).toBe(true);
      expect(await focused(), `${path} ${name}`).toBe(name);
      await page.keyboard.press('Enter');
      await page.getByText(`Page ${number} of 2`).first().waitFor();
    }
  }
  await open('/coverage?sort=name&from=2024-12-30&to=2025-01-02');
  await page.getByRole('button', { name: /^Table of People/ }).click();
  const table = page.getByRole('region', { name: /^Table: People/ });
  for (const [name, rows] of [
    ['After', 'Rows 201 to 240 of 240'],
    ['Before', 'Rows 1 to 200 of 240'],
  ] as const) {
    await table.getByRole('button', { name }).focus();
    await page.keyboard.press('Enter');
    await table.getByText(rows).waitFor();
    expect(await focused(), rows).toBe(name);
  }
  expect(complaints).toEqual([]);
});

test.skipIf(!hasChromium)('where a button goes with its press the keyboard goes on at what is shown', async () => {
  const { page, open, press } = await look();
  const inMain = (): Promise<boolean> => page.evaluate("document.activeElement.closest('main') !== null");
  await open('/coverage?state=not_asked&from=2025-01-01&to=2025-01-03');
  const everybody = await press('Show everybody again');
  await everybody.waitFor({ state: 'detached' });
  expect(await inMain()).toBe(true);
  const cut = '**/api/people/p10/night/**';
  await page.route(cut, route => route.abort());
  await page.goto(page.url().replace(/\/coverage.*/, '/people/p10'));
  await page.getByRole('alert').first().waitFor();
  await page.unroute(cut);
  await press('Try again');
  await page.getByRole('alert').first().waitFor({ state: 'detached' });
  expect(await inMain()).toBe(true);
});
