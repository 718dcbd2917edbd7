import { expect, test } from 'vitest';
import type { PlannedWindow } from '../../../src/ledger/windows.ts';
import { AccountWindows } from '../../../src/sync/runs/account-windows.ts';

test('the windows of an account are made ready one by one as they are begun: years of many people must not hold up events when a run begins', () => {
  const made: number[] = [];
  const planned = (startAt: number): PlannedWindow => ({
    runId: 'run',
    collection: 'sleep',
    startAt,
    endAt: startAt + 1,
    get userId() {
      made.push(startAt);
      return 'ada';
    },
  });
  const windows = new AccountWindows(0, [[1, 2, 3].map(planned), [planned(4)]], 10);
  expect(made).toEqual([]);
  const first = windows.take()!;
  const second = windows.take()!;
  expect(made).toEqual([1, 2]);
  // What was begun comes before what was not.
  windows.putOff(first, 0);
  windows.replace(second, [{ ...second, startAt: 2.5 }]);
  const rest = [windows.take()!, windows.take()!, windows.take()!];
  expect(rest.map(({ startAt }) => startAt)).toEqual([2.5, 1, 3]);
  expect([windows.hasNext(), windows.isDone]).toEqual([false, false]);
  for (const window of rest) windows.close(window);
  expect(made).toEqual([1, 2, 3]);
  windows.close(windows.take()!);
  expect([made.at(-1), windows.isDone]).toEqual([4, true]);
});
