import { expect, test } from 'vitest';
import { below, pick, randomFrom } from '../support/random-documents.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse } from '../support/warehouse.ts';
import { macros } from './views-oracle.ts';
import { findDifferences } from './views-oracle-compare.ts';
import { generatedPeople, randomPeople } from './views-oracle-documents.ts';

// The views against loops over the documents themselves. More seeds: test/campaign/views.test.ts.

const folder = tempFolder();

test.each([1])('every view holds what random documents say, seed %i', async seed => {
  expect(await findDifferences(folder, randomPeople(seed, 45))).toEqual({});
});

test('every view holds what the documents of somebody say who flies from New York to Kathmandu and back', async () => {
  const [, flier] = generatedPeople(7, 2, '2025-08-02', '2025-08-12');
  expect(await findDifferences(folder, [flier!])).toEqual({});
});

test('the macros give what plain arithmetic gives, on and around every border', async () => {
  const random = randomFrom(1);
  const asked: string[] = [];
  const expected: unknown[] = [];
  for (let i = 0; i < 500; i++) {
    const offset = below(random, 27 * 4) * 900 - 12 * 3600;
    const second = below(random, 40_000) * 86_400 + pick(random, [0, 4, 12, 18, 24]) * 3600 + pick(random, [0, 1, -30]);
    const local = second * 1_000_000 - pick(random, [0, 1]);
    const [ts, duration] = [local - offset * 1_000_000, below(random, 400_000) / 2 - 50_000];
    asked.push(`(${i}, make_timestamp(${ts}), ${offset}, ${duration}::DOUBLE)`);
    expected.push([i, local, macros.night_of(ts, offset), macros.activity_day_of(ts, offset), macros.hhmm(duration)]);
  }
  const warehouse = await openWarehouse(newPath(folder));
  try {
    expect(
      await warehouse.read(
        `SELECT i, local(ts, utc_offset), night_of(ts, utc_offset), activity_day_of(ts, utc_offset), hhmm(duration)
         FROM (VALUES ${asked.join()}) AS asked(i, ts, utc_offset, duration) ORDER BY i`,
      ),
    ).toEqual(expected);
  } finally {
    await warehouse.close();
  }
});
