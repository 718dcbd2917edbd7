import { join } from 'node:path';
import { test } from 'vitest';
import { randomAnswers } from '../support/random-answers.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { rounds, seed } from './choice.ts';

const folder = tempFolder();

test(`after many random answers every id is there once and every sample belongs to one, seed ${seed}`, () =>
  randomAnswers(join(folder, 'warehouse.duckdb'), { seed, rounds: 4 * rounds }));
