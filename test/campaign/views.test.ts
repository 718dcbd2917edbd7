import { expect, test } from 'vitest';
import { addDays } from '../../schema/instant.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { findDifferences } from '../warehouse/views-oracle-compare.ts';
import { generatedPeople, randomPeople } from '../warehouse/views-oracle-documents.ts';
import { rounds, seed } from './choice.ts';

const folder = tempFolder();

test(`every view holds what random documents say, seed ${seed}`, async () => {
  for (let round = 0; round < rounds; round++) {
    expect(await findDifferences(folder, randomPeople(1000 * seed + round, 120)), `round ${round}`).toEqual({});
  }
});

test(`every view holds what the documents of generated people say through a year and a leap day, seed ${seed}`, async () => {
  for (let from = '2024-02-01'; from < '2025-02-01'; from = addDays(from, 60)) {
    expect(await findDifferences(folder, generatedPeople(seed, 3, from, addDays(from, 59))), from).toEqual({});
  }
});
