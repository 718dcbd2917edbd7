import { expect, it } from 'vitest';
import { createUserModel } from '../../../src/simulator/users/create-user-model.ts';
import { ringBatteryLevel } from '../../../src/simulator/users/documents/battery.ts';
import { createPerson } from '../../../src/simulator/users/person.ts';
import { createUserRecord } from '../../../src/simulator/users/user-record.ts';
import { wholeView } from '../../../src/simulator/users/view.ts';
import { allOf, yearOf } from './conformity.ts';

const people = yearOf(3);

interface Reading {
  timestamp_unix: number;
  level: number;
  in_charger?: boolean | null;
  charging?: boolean | null;
}

/** What the batteries of all tell in a year, person by person. */
const years = people.persons.map(({ userId }) => allOf(people, userId, 'ring_battery_level') as unknown as Reading[]);

it('a battery empties while the ring is worn and fills in its charger, the ring not being worn then', () => {
  for (const [index, rows] of years.entries()) {
    const { planOf } = createUserModel(createPerson(7, index));
    const gaps = Array.from({ length: 367 }, (_, i) => planOf(20_088 + i).gaps).flat();
    let [fuller, emptier, worn, outside] = [0, 0, 0, 0];
    for (const [i, row] of rows.entries()) {
      const at = row.timestamp_unix / 1000;
      if (row.in_charger && !gaps.some(({ start, end }) => start <= at && at < end)) worn++;
      if (row.charging && row.in_charger === false) outside++;
      const before = rows[i - 1];
      if (!before || row.in_charger !== before.in_charger) continue;
      // Between two readings an hour apart lies no charge.
      if (row.in_charger === false && row.level > before.level) fuller++;
      if (row.in_charger === true && row.level < before.level) emptier++;
    }
    expect([emptier, worn, outside]).toEqual([0, 0, 0]);
    // After an empty battery or a short charge between two of them the next reading is fuller.
    expect(fuller).toBeLessThan(rows.length / 200);
  }
});

it('a battery is read each hour but for when it is empty, at a moment of its own, and is seldom nearly empty', () => {
  for (const rows of years) {
    expect(rows.length).toBeGreaterThan(365 * 23);
    const isLate = (at: number, i: number) => at - (rows[i - 1]?.timestamp_unix ?? 0) >= 600_000;
    expect(rows.every(({ timestamp_unix: at, level }, i) => isLate(at, i) && level >= 0 && level <= 100)).toBe(true);
    expect(rows.filter(({ level }) => level < 9).length).toBeLessThan(rows.length / 50);
    expect(rows.filter(({ in_charger }) => in_charger).length).toBeGreaterThan(100);
  }
});

it('nothing of a battery is there that the ring has not brought yet', () => {
  const model = createUserModel(createPerson(7, 0));
  const synced = Date.parse('2025-03-10T12:00:00Z') / 1000;
  const record = createUserRecord(model, [], { ...wholeView(0), synced, uploaded: synced + 7200 });
  const rows = ringBatteryLevel(record, 20_157);
  expect(rows.length).toBeGreaterThan(10);
  expect(Number(rows.at(-1)!.timestamp_unix) / 1000).toBeLessThanOrEqual(synced);
  expect(ringBatteryLevel(record, 20_158)).toEqual([]);
});
