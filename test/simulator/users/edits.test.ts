import { describe, expect, it } from 'vitest';
import type { Sample } from '../../../schema/fields.ts';
import { resources } from '../../../schema/index.ts';
import { findInstant } from '../../../schema/instant.ts';
import type { Edit } from '../../../src/simulator/users/edits.ts';
import { createPeople } from '../../../src/simulator/users/people.ts';
import { SINGLE } from '../../support/declared.ts';
import { allOf, findStrange } from './conformity.ts';

const options = { seed: 7, count: 1, from: '2025-05-01', to: '2025-05-31' };
const before = createPeople(options);
const { userId } = before.persons[0]!;
const night = allOf(before, userId, 'sleep').find(
  each => each.type === 'long_sleep' && each.sleep_analysis_reason && each.sleep_phase_30_sec,
)!;
const about = { userId, day: night.day as string, id: night.id as string };
const seconds = (text: unknown) => findInstant(text as string)!.micros / 1e6;

function edited(...edits: Edit[]) {
  const people = createPeople({ ...options, edits });
  const of = (resource: string) => people.documents(userId, resource, about.day);
  return { people, of, night: of('sleep').find(({ id }) => id === about.id) };
}

/** The resources of which any document differs, by day. */
function differences(...edits: Edit[]): Set<string> {
  const { people } = edited(...edits);
  const differ = new Set<string>();
  for (const { name } of SINGLE) {
    const [old, now] = [before, people].map(each => new Map(allOf(each, userId, name).map(document => [document.id, document])));
    for (const id of new Set([...old!.keys(), ...now!.keys()])) {
      const [a, b] = [old!.get(id), now!.get(id)];
      if (JSON.stringify(a) !== JSON.stringify(b)) differ.add(`${name} ${(a ?? b)!.day}`);
    }
  }
  return differ;
}

const on = (...names: string[]) => new Set(names.map(name => `${name} ${about.day}`));

describe('an edit', () => {
  it('deletes a sleep, and with the night what was said of it', () => {
    const { of, night: gone } = edited({ kind: 'delete-sleep', ...about });
    expect(gone).toBeUndefined();
    expect(of('daily_sleep')).toEqual([]);
    for (const { score } of of('daily_readiness')) expect(score).toBeNull();
    for (const each of differences({ kind: 'delete-sleep', ...about })) expect(each.endsWith(about.day)).toBe(true);
  });

  it('gives a sleep another type, which may take it out of the scores', () => {
    const { of, night: rejected } = edited({ kind: 'retype-sleep', ...about, type: 'deleted' });
    expect(rejected).toMatchObject({ type: 'deleted', time_in_bed: night.time_in_bed });
    expect(of('daily_sleep')).toEqual([]);
  });

  it('moves bedtime and waking, and everything agrees again', () => {
    for (const [startShift, endShift] of [
      [-900, 1230],
      [1800, -600],
      [100_000, -100_000],
    ] as const) {
      const { people, night: moved } = edited({ kind: 'edit-bedtime', ...about, startShift, endShift });
      const length = seconds(moved!.bedtime_end) - seconds(moved!.bedtime_start);
      expect(moved).toMatchObject({ time_in_bed: length, sleep_analysis_reason: 'bedtime_edit' });
      expect(length).toBeGreaterThanOrEqual(900);
      expect((moved!.sleep_phase_30_sec as string).length * 30).toBe(length);
      expect((moved!.total_sleep_duration as number) + (moved!.awake_time as number)).toBe(length);
      expect((moved!.heart_rate as Sample).items.length).toBe((moved!.sleep_phase_5_min as string).length);
      const sleep = resources.find(({ name }) => name === 'sleep')!;
      expect(sleep.document.safeParse(moved).success).toBe(true);
      expect(findStrange(sleep.document, moved)).toEqual([]);
      expect(people.heartRate(userId, 0, 2e15, 5000)).toEqual(before.heartRate(userId, 0, 2e15, 5000));
    }
    const { night: moved } = edited({ kind: 'edit-bedtime', ...about, startShift: -900, endShift: 1230 });
    expect(seconds(moved!.bedtime_start)).toBe(seconds(night.bedtime_start) - 900);
    expect(seconds(moved!.bedtime_end)).toBe(seconds(night.bedtime_end) + 1230);
    expect((moved!.heart_rate as Sample).items.slice(3, 90)).toEqual((night.heart_rate as Sample).items.slice(0, 87));
  });

  it('analyses a day anew: other phases, the same measurements', () => {
    const { night: again } = edited({ kind: 'reanalyse-day', userId, day: about.day });
    expect(again).toMatchObject({ heart_rate: night.heart_rate, bedtime_start: night.bedtime_start, time_in_bed: night.time_in_bed });
    expect(again!.sleep_phase_30_sec).not.toBe(night.sleep_phase_30_sec);
    const twice = edited({ kind: 'reanalyse-day', userId, day: about.day }, { kind: 'reanalyse-day', userId, day: about.day }).night;
    expect(twice!.sleep_phase_30_sec).not.toBe(again!.sleep_phase_30_sec);
  });

  it('reaches the documents that depend on it and no other', () => {
    const reached = differences({ kind: 'reanalyse-day', userId, day: about.day });
    expect(reached).toEqual(on('sleep', 'daily_sleep', 'daily_readiness'));
    expect(differences({ kind: 'delete-sleep', ...about, id: 'unknown' })).toEqual(new Set());
    expect(differences({ kind: 'reanalyse-day', userId: 'somebody', day: about.day })).toEqual(new Set());
  });
});
