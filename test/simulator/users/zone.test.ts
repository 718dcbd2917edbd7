import { expect, it } from 'vitest';
import { findDayNumber } from '../../../schema/instant.ts';
import { createZone } from '../../../src/simulator/users/zone.ts';

const berlin = createZone('Europe/Berlin');
const seconds = (text: string) => Date.parse(text) / 1000;
const day = (text: string) => findDayNumber(text)!;

it('knows the second in which the clocks change', () => {
  expect(berlin.offsetAt(seconds('2025-03-30T00:59:59Z'))).toBe(3600);
  expect(berlin.offsetAt(seconds('2025-03-30T01:00:00Z'))).toBe(7200);
  expect(berlin.offsetAt(seconds('2025-10-26T00:59:59Z'))).toBe(7200);
  expect(berlin.offsetAt(seconds('2025-10-26T01:00:00Z'))).toBe(3600);
});

it('finds the moment of a local time, before midnight and across changes', () => {
  expect(berlin.at(day('2025-03-30'), 4 * 3600)).toBe(seconds('2025-03-30T02:00:00Z'));
  expect(berlin.at(day('2025-03-30'), -3600)).toBe(seconds('2025-03-29T22:00:00Z'));
  // There is no 02:30 on that day; it is what the clock shows half an hour after the change.
  expect(berlin.at(day('2025-03-30'), 2.5 * 3600)).toBe(seconds('2025-03-30T01:30:00Z'));
  expect(createZone('Asia/Kathmandu').at(day('2025-01-01'), 0)).toBe(seconds('2024-12-31T18:15:00Z'));
  expect(createZone('America/Sao_Paulo').at(day('2025-01-01'), 0)).toBe(seconds('2025-01-01T03:00:00Z'));
});

it('writes local time with its offset, and reads the clock back', () => {
  const moment = seconds('2025-11-02T06:30:00Z');
  const newYork = createZone('America/New_York');
  expect(newYork.write(moment)).toBe('2025-11-02T01:30:00.000-05:00');
  expect(newYork.local(moment)).toEqual({ day: day('2025-11-02'), clock: 5400 });
});
