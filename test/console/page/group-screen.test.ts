import { expect, test } from 'vitest';
import { violationsOf } from '../../support/axe.ts';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { enterConsole } from '../../support/console-page.ts';
import { placePeople, sleepOf } from '../people-by-hand.ts';

const night = (day: string, average_hrv: number | null) =>
  sleepOf(day, `${day}T00:30:00+01:00`, `${day}T08:30:00+01:00`, { average_hrv, total_sleep_duration: 25_200 });

test.skipIf(!hasChromium)(
  'lines of many people share their days, break where a value is missing, and say whose scale they have',
  async () => {
    const data = await placePeople({
      ann: { sleep: [night('2025-01-01', 40), night('2025-01-02', 44), night('2025-01-03', null), night('2025-01-04', 52)] },
      ben: { sleep: [night('2025-01-01', 80), night('2025-01-02', 90)] },
      zoe: { sleep: [night('2024-12-01', 33)] },
    });
    const served = await openConsoleHere(data);
    const browser = await openChromium();
    const { page, complaints } = await enterConsole(browser, served);
    await page.goto(`${served.url}/coverage?from=2025-01-01&to=2025-01-04&sort=name`);
    const group = page.getByRole('figure', { name: 'Night HRV, group' });
    const line = (id: string) => group.locator(`[data-person=${id}]`);
    const pointsOf = (id: string) =>
      line(id).evaluate(svg => [...svg.querySelectorAll('[data-points]')].map(part => part.getAttribute('data-points')));
    const lastOf = async (id: string) => [
      await line(id).locator('text').textContent(),
      await line(id).locator('[data-value]').getAttribute('cy'),
    ];
    await line('ann').waitFor();
    expect(await pointsOf('ann')).toEqual(['2025-01-01,40 2025-01-02,44', '2025-01-04,52']);
    expect(await pointsOf('ben')).toEqual(['2025-01-01,80 2025-01-02,90']);
    expect(await pointsOf('zoe')).toEqual([]);
    // The highest of its own values stands at the top, 6 pixels down.
    expect([await lastOf('ann'), await lastOf('ben'), await line('zoe').locator('text').textContent()]).toEqual([
      ['52', '6'],
      ['90', '6'],
      '—',
    ]);
    await group.getByText('2 of 3 people have a value, 40 to 90 ms; each on its own scale, its range beside the name.').waitFor();
    await group.getByLabel('Scale').selectOption('common');
    await group.getByText('one scale for all, 40 to 90 ms.').waitFor();
    expect(new URL(page.url()).searchParams.get('scale')).toBe('common');
    // From 40 at 40 to 90 at 6: 52 lies at 40 − 34 × 12 / 50.
    const [, y] = await lastOf('ann');
    expect(Number(y)).toBeCloseTo(31.84, 6);
    await group.getByRole('group', { name: /^Night HRV of 3 people/ }).focus();
    await page.keyboard.press('ArrowRight');
    expect(await group.getByRole('status').textContent()).toBe('1 Jan: 2 of 3 people have a value, 40 to 80 ms');
    expect((await lastOf('ben'))[0]).toBe('80');
    await group.getByLabel('Metric').selectOption('steps');
    await page.getByRole('figure', { name: 'Steps, group' }).getByText('Nobody has a value in these days.').waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.setViewportSize({ width: 390, height: 800 });
    expect(await violationsOf(page)).toEqual([]);
    expect(complaints).toEqual([]);
  },
);
