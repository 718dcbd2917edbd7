import { expect, test } from 'vitest';
import { exportLine } from '../../../src/cli/terminal/export-progress.ts';

test('the line of progress fits the terminal', () => {
  const progress = { files: { done: 3, total: 12 }, rows: { done: 250_000, total: 1_000_000 }, now: 'sleep-2025-03.parquet' };
  expect(exportLine(progress, 100)).toBe('██████░░░░░░░░░░░░░░░░░░ 25%  3/12 files, 250,000 rows, sleep-2025-03.parquet');
  expect(exportLine(progress, 40)).toBe('█░░░ 25%  3/12 files, 250,000 rows, sle');
  expect(exportLine({ files: { done: 0, total: 0 }, rows: { done: 0, total: 0 }, now: 'done' }, 80)).toBe(
    '████████████████████████ 100%  done',
  );
});
