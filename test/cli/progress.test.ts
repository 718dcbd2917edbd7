import { expect, test } from 'vitest';
import { formatCount, formatTable } from '../../src/cli/terminal/print.ts';
import { barLine } from '../../src/cli/terminal/progress.ts';
import { tellFacts } from '../../src/cli/terminal/run-progress.ts';
import type { Progress } from '../../src/sync/runs/run.ts';

const progress = (changes: Partial<Omit<Progress, 'windows'>> & { windows?: Partial<Progress['windows']> } = {}): Progress => ({
  documents: 0,
  samples: 0,
  unchanged: 0,
  rejected: 0,
  requests: 0,
  removed: 0,
  waits: 0,
  ...changes,
  windows: { planned: 40, done: 0, skipped: 0, failed: 0, ...changes.windows },
});

function at(first: Progress) {
  const clock = { ms: 1_000 };
  const tell = tellFacts(first, () => clock.ms, formatCount);
  return (ms: number, then: Progress) => {
    clock.ms = 1_000 + ms;
    return tell(then);
  };
}

test('documents, samples, requests, waits, the rate and the time left', () => {
  const tell = at(progress());
  expect(tell(2_000, progress({ windows: { done: 9, failed: 1 }, documents: 1_000, samples: 19_000, requests: 52, waits: 3 }))).toBe(
    '6 s left, 1,000 documents, 19,000 samples, 52 requests, 3 waits, 10,000/s',
  );
});

test('while all that is left waits it is told until when and for whom, in place of the time left', () => {
  const tell = at(progress());
  const waiting = (users: string[], ms: number) =>
    tell(2_000, progress({ windows: { done: 10 }, documents: 1_000, waiting_until: { at: new Date(ms).toISOString(), users } }));
  const noon = new Date(2025, 2, 10, 12, 0).getTime();
  expect(waiting(['ada'], noon - 30_000)).toBe('waiting until 12:00 for ada, 1,000 documents, 0 samples, 0 requests, 500/s');
  expect(waiting(['ada', 'ben'], noon)).toMatch(/^waiting until 12:00 for ada, ben, 1,000 documents/);
  expect(waiting(['ada', 'ben', 'cleo'], noon + 1)).toMatch(/^waiting until 12:01 for 3 accounts, /);
});

test('the first moment tells no rate, and nobody knows the time left before a window is settled', () => {
  const tell = at(progress());
  expect(tell(0, progress())).toBe('0 documents, 0 samples, 0 requests');
  expect(tell(499, progress({ documents: 84 }))).toBe('84 documents, 0 samples, 0 requests');
  expect(tell(500, progress({ documents: 84 }))).toBe('84 documents, 0 samples, 0 requests, 168/s');
});

test('at the end nothing is left', () => {
  expect(at(progress())(1_000, progress({ windows: { done: 40 }, documents: 10 }))).toBe('10 documents, 0 samples, 0 requests, 10/s');
});

test('a run that is half done already is counted from where it was', () => {
  const tell = at(progress({ windows: { done: 20 }, documents: 1_000_000 }));
  expect(tell(10_000, progress({ windows: { done: 30 }, documents: 1_000_500 }))).toBe(
    '10 s left, 1,000,500 documents, 0 samples, 0 requests, 50/s',
  );
});

test.each([
  [10_000, 1, '7 min left'],
  [60_000, 1, '39 min left'],
  [90_000, 1, '59 min left'],
  [92_400, 1, '1 h 1 min left'],
  [600_000, 1, '6 h 30 min left'],
])('after %i ms and %i of 40 windows: %s', (ms, done, left) => {
  expect(at(progress())(ms, progress({ windows: { done } }))).toContain(`${left}, `);
});

test('the bar takes the width that the facts leave, at most 24 and at least 4, and the line ends with the terminal', () => {
  expect(barLine(0.5, 'facts', 80)).toBe(`${'█'.repeat(12)}${'░'.repeat(12)} 50%  facts`);
  expect(barLine(0.5, 'facts', 21)).toBe('████░░░░░ 50%  facts');
  expect(barLine(0.5, 'facts', 16)).toBe('██░░ 50%  facts');
  expect(barLine(0.5, 'facts', 10)).toBe('██░░ 50% ');
  expect(barLine(1, 'facts', 80)).toBe(`${'█'.repeat(24)} 100%  facts`);
});

test('a line of the usual numbers fits a terminal of 80 columns', () => {
  const facts = '12 s left, 12.3K documents, 4.56M samples, 1,234 requests, 210K/s';
  expect(barLine(0.5, facts, 80)).toBe(`████░░░░ 50%  ${facts}`);
});

test('a table has no lines and no blanks at the ends', () => {
  expect(
    formatTable(
      ['name', 'n'],
      [
        ['ada', 1],
        ['ben', null],
      ],
    ),
  ).toBe('name  n\nada   1\nben');
});
