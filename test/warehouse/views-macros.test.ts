import { expect, test } from 'vitest';
import { rows } from '../support/warehouse.ts';
import { emptiedWarehouse } from './views-setup.ts';

const warehouse = await emptiedWarehouse();

test.each([
  ['hhmm(25500)', '7:05'],
  ['hhmm(0)', '0:00'],
  ['hhmm(29)', '0:00'],
  ['hhmm(30)', '0:01'],
  ['hhmm(3599)', '1:00'],
  ['hhmm(90000)', '25:00'],
  ['hhmm(360000)', '100:00'],
  ['hhmm(-29)', '0:00'],
  ['hhmm(-60)', '-0:01'],
  ['hhmm(-5430)', '-1:31'],
  ['hhmm(NULL)', null],
  [`local(TIMESTAMP '2025-01-01 00:30:00', -12600)`, '2024-12-31 21:00:00'],
  [`local(TIMESTAMP '2025-01-01 00:30:00.25', 20700)`, '2025-01-01 06:15:00.25'],
  [`local(NULL, 3600)`, null],
  [`local(TIMESTAMP '2025-01-01 00:30:00', NULL)`, null],
  [`night_of(TIMESTAMP '2025-01-01 16:59:59.999', 3600)`, '2025-01-01'],
  [`night_of(TIMESTAMP '2025-01-01 17:00:00', 3600)`, '2025-01-02'],
  [`night_of(TIMESTAMP '2025-01-01 00:00:00', 3600)`, '2025-01-01'],
  [`activity_day_of(TIMESTAMP '2025-01-01 02:59:59.999', 3600)`, '2024-12-31'],
  [`activity_day_of(TIMESTAMP '2025-01-01 03:00:00', 3600)`, '2025-01-01'],
  [`activity_day_of(NULL, 3600)`, null],
])('%s is %s', async (expression, value) => {
  expect(await rows(warehouse, `SELECT CAST(${expression} AS VARCHAR) AS value`)).toEqual([{ value }]);
});
