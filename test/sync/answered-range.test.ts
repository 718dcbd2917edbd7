import { expect, test } from 'vitest';
import { ensureAnswers, momentsOfDays, momentsOfDocuments } from '../../src/sync/read-collection.ts';

const ASKED = momentsOfDays({ from: '2025-03-30', to: '2025-07-01' });

function judge(days: readonly string[], range: typeof ASKED): string {
  try {
    ensureAnswers(
      '/v2/usercollection/daily_stress',
      momentsOfDocuments(
        { dayField: 'day' },
        days.map(day => ({ day })),
      ),
      range,
    );
    return 'answered';
  } catch (error) {
    return (error as Error).message;
  }
}

test.each([
  ['nothing', []],
  ['its days', ['2025-03-30', '2025-05-12', '2025-07-01']],
  ['the days beside them', ['2025-03-29', '2025-07-02']],
  ['some days more than were asked for', ['2025-03-20', '2025-03-30', '2025-05-12', '2025-07-01']],
])('an answer of %s answers what was asked', (_, days) => {
  expect(judge(days, ASKED)).toBe('answered');
});

test.each([
  ['other days', ['2025-01-01', '2025-02-01']],
  ['the window before, whose last days are asked for as well', ['2025-01-01', '2025-02-01', '2025-03-01', '2025-03-30', '2025-03-31']],
])('an answer of %s answers another question', (_, days) => {
  expect(judge(days, ASKED)).toContain('answered another range than the one that was asked for');
});

test('where no range was asked for every day answers', () => {
  expect(judge(['1999-12-31'], undefined)).toBe('answered');
});
