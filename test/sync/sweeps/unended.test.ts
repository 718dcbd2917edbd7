import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openHarness } from '../../support/harness.ts';
import { startLiteralService } from '../../support/literal-service.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const folder = tempFolder();
const rest = (day: string, changes: object = {}) => ({
  id: `r-${day}`,
  start_day: day,
  start_time: `${day}T09:00:00+01:00`,
  end_day: null,
  end_time: null,
  episodes: [],
  ...changes,
});

/** A person of whom a night of 14 days reads from 2025-03-18 on. */
async function open(name: string, ...documents: ReturnType<typeof rest>[]) {
  const service = await startLiteralService('rest_mode_period', 'enhanced_tag');
  onTestFinished(() => service.close());
  const list = service.documents.get('rest_mode_period')!;
  list.push(...documents);
  const harness = await openHarness(join(folder, name), service.url, { now: () => Date.parse('2025-03-30T12:00:00Z') });
  await harness.keep([{ name: 'ada', token: 'token-ada' }]);
  const ends = () => harness.read('SELECT start_day::VARCHAR, end_day::VARCHAR FROM rest_mode_period ORDER BY ALL');
  /** The first days that a night asks for, two more before each. */
  const night = async () => {
    const before = service.asked.length;
    expect((await harness.nightly(14)).state).toBe('complete');
    const asked = service.asked.slice(before).filter(({ path }) => path.endsWith('/rest_mode_period'));
    return asked.map(({ query }) => query.get('start_date'));
  };
  return { service, list, harness, ends, night };
}

test('a rest mode that goes on is looked at by nights until it has ended, however many days it takes', async () => {
  // What came as the neighbour of the first day that was read would make a hole of the days between.
  const neighbour = rest('2024-12-31');
  const { list, harness, ends, night } = await open('ends', rest('2025-02-03'), rest('2025-01-10', { end_day: '2025-01-12' }), neighbour);
  await harness.backfill({ from: '2025-01-01', collections: ['rest_mode_period'] });
  expect(await night()).toEqual(['2025-03-16', '2025-02-01']);
  list[0] = rest('2025-02-03', { end_day: '2025-03-29', end_time: '2025-03-29T08:00:00+01:00' });
  expect(await night()).toHaveLength(2);
  expect(await ends()).toEqual([
    ['2024-12-31', null],
    ['2025-01-10', '2025-01-12'],
    ['2025-02-03', '2025-03-29'],
  ]);
  expect(await night()).toEqual(['2025-03-16']);
});
