import { describe, expect, it } from 'vitest';
import type { Sample } from '../../../schema/fields.ts';
import { resources } from '../../../schema/index.ts';
import { findInstant, formatDay } from '../../../schema/instant.ts';
import type { WireDocument } from '../../../schema/resource.ts';
import { createPeople, createUserModels, showPeople } from '../../../src/simulator/users/people.ts';
import { createUserRecord } from '../../../src/simulator/users/user-record.ts';
import { SPECIFIED } from '../../support/declared.ts';
import { someOf } from '../../support/whole.ts';
import { daysOf } from './conformity.ts';

const FROM = '2025-02-01';
const models = createUserModels(7, 3);
const whole = createPeople({ seed: 7, count: 3, from: FROM, to: '2025-03-31' });
const [ada, ben, cleo] = models.map(model => model.person.userId) as [string, string, string];
const seconds = (text: string) => findInstant(text)!.micros / 1e6;

/** The people after a last sync and a last upload; nothing is whole. */
function seen(synced: string, uploaded = synced) {
  const view = { wholeTo: -1, synced: seconds(synced), uploaded: seconds(uploaded) };
  return showPeople(7, FROM, new Map(models.map(model => [model.person.userId, createUserRecord(model, [], view)])));
}

/** What there is of a day, as `resource: count`. */
function counts(people: ReturnType<typeof seen>, userId: string, day: string): Record<string, number> {
  const names = SPECIFIED.filter(({ dated }) => dated).map(({ name }) => name);
  return Object.fromEntries(
    names.map(name => [name, people.documents(userId, name, day).length] as const).filter(([, count]) => count > 0),
  );
}

describe('what the ring recorded is there after the sync that follows its end', () => {
  // ada sleeps to 07:26:30, meditates from 09:19:35 to 09:34:00 and naps from 13:23:30 to 15:04:00.
  it.each([
    ['2025-02-17T20:26:33+01:00', {}],
    ['2025-02-18T07:26:29+01:00', { sleep: 1 }],
    ['2025-02-18T08:50:02+01:00', { daily_readiness: 1, daily_sleep: 1, daily_spo2: 1, daily_resilience: 1, sleep_time: 1, sleep: 1 }],
    [
      '2025-02-18T12:15:04+01:00',
      { daily_readiness: 1, daily_sleep: 1, daily_spo2: 1, daily_resilience: 1, sleep_time: 1, sleep: 1, session: 1 },
    ],
    [
      '2025-02-18T19:55:01+01:00',
      { daily_readiness: 1, daily_sleep: 1, daily_spo2: 1, daily_resilience: 1, sleep_time: 1, sleep: 2, session: 1 },
    ],
  ])('synced at %s', (synced, expected) => {
    expect(counts(seen(synced, '2025-02-17T20:00:00+01:00'), ada, '2025-02-18')).toEqual(expected);
  });

  it('a night that goes on is there as far as it has come, without an end, and counts for nothing', () => {
    // ada went to bed at 00:50:30.
    expect(seen('2025-02-18T01:05:29+01:00').documents(ada, 'sleep', '2025-02-18')).toEqual([]);
    const people = seen('2025-02-18T02:01:13+01:00');
    const [night] = people.documents(ada, 'sleep', '2025-02-18');
    const [over] = whole.documents(ada, 'sleep', '2025-02-18');
    expect(night).toMatchObject({
      id: over!.id,
      bedtime_start: '2025-02-18T00:50:30.000+01:00',
      bedtime_end: null,
      time_in_bed: 4230,
      type: null,
      readiness: null,
    });
    expect(night!.sleep_phase_30_sec).toBe((over!.sleep_phase_30_sec as string).slice(0, 141));
    expect((night!.heart_rate as Sample).items).toEqual((over!.heart_rate as Sample).items.slice(0, 14));
    expect(counts(people, ada, '2025-02-18')).toEqual({ sleep: 1 });
    expect(over!.bedtime_end).toBe('2025-02-18T07:26:30.000+01:00');
  });

  it('a nap changes the scores of its day when it has synced', () => {
    const [before, after] = ['2025-02-18T12:15:04+01:00', '2025-02-18T19:55:01+01:00'].map(
      synced => seen(synced).documents(ada, 'daily_sleep', '2025-02-18')[0]!,
    );
    expect(after!.id).toBe(before!.id);
    expect((after!.contributors as Record<string, number>).total_sleep).toBeGreaterThan(
      (before!.contributors as Record<string, number>).total_sleep!,
    );
    expect(after).toEqual(whole.documents(ada, 'daily_sleep', '2025-02-18')[0]);
  });

  it('an evening nap counts for the day after, and is there before its night', () => {
    // ben naps on 2 March from 18:15:30 to 19:10:30.
    const evening = seen('2025-03-02T19:30:00-05:00');
    expect(evening.documents(ben, 'sleep', '2025-03-03')).toMatchObject([
      { type: 'late_nap', bedtime_end: '2025-03-02T19:10:30.000-05:00' },
    ]);
    expect(counts(evening, ben, '2025-03-03')).toEqual({ sleep: 1 });
    const morning = seen('2025-03-03T08:00:00-05:00');
    expect(morning.documents(ben, 'sleep', '2025-03-03').map(({ type }) => type)).toHaveLength(2);
    expect(morning.documents(ben, 'daily_sleep', '2025-03-03')).toHaveLength(1);
  });

  it('an estimate of VO2 max is there when it has been made', () => {
    expect(seen('2025-02-03T17:35:27+01:00').documents(ada, 'vo2_max', '2025-02-03')).toEqual([]);
    expect(seen('2025-02-03T17:35:28+01:00').documents(ada, 'vo2_max', '2025-02-03')).toMatchObject([
      { timestamp: '2025-02-03T17:35:28.000+01:00' },
    ]);
  });

  it('after a night without the ring a sync in the morning still brings what can be said', () => {
    // ada did not wear it; it lay elsewhere until 07:35.
    expect(counts(seen('2025-02-19T07:34:00+01:00', '2025-02-18T20:00:00+01:00'), ada, '2025-02-19')).toEqual({});
    expect(counts(seen('2025-02-19T08:51:32+01:00', '2025-02-18T20:00:00+01:00'), ada, '2025-02-19')).toEqual({
      daily_readiness: 1,
      sleep_time: 1,
    });
  });
});

describe('activity and stress come in the background', () => {
  const day = '2025-02-18';
  const start = seconds(`${day}T04:00:00+01:00`);
  const activityAt = (moment: number) => {
    const view = { wholeTo: -1, synced: seconds(`${day}T00:00:00+01:00`), uploaded: moment };
    const people = showPeople(7, FROM, new Map([[ada, createUserRecord(models[0]!, [], view)]]));
    return { activity: people.documents(ada, 'daily_activity', day)[0], stress: people.documents(ada, 'daily_stress', day)[0] };
  };

  it('today’s activity is what the minutes so far come to, in whole 5 minutes', () => {
    expect(activityAt(start + 299).activity).toBeUndefined();
    const { activity } = activityAt(start + 8 * 3600 + 299);
    const all = whole.documents(ada, 'daily_activity', day)[0]!;
    expect((activity!.met as Sample).items).toEqual((all.met as Sample).items.slice(0, 480));
    expect(activity!.class_5_min).toBe((all.class_5_min as string).slice(0, 96));
    const times = ['non_wear_time', 'resting_time', 'sedentary_time', 'low_activity_time', 'medium_activity_time', 'high_activity_time'];
    expect(times.reduce((sum, key) => sum + (activity![key] as number), 0)).toBe(28_800);
    expect(activity!.id).toBe(all.id);
  });

  it('it grows and never shrinks, and ends as the whole day’s document', () => {
    for (const [index, userId] of [ada, ben, cleo].entries()) {
      for (const number of [20137, 20138, 20139, 20140]) {
        const zone = models[index]!.zone;
        const [first, last] = [zone.at(number, 14_400), zone.at(number + 1, 14_400)];
        let before: WireDocument | undefined;
        for (let moment = first; moment <= last; moment += 1800) {
          const view = { wholeTo: -1, synced: first, uploaded: moment };
          const people = showPeople(7, FROM, new Map([[userId, createUserRecord(models[index]!, [], view)]]));
          const [now] = people.documents(userId, 'daily_activity', formatDay(number));
          if (moment > first) expect((now!.met as Sample).items).toHaveLength((moment - first) / 60);
          for (const key of [
            'steps',
            'active_calories',
            'total_calories',
            'equivalent_walking_distance',
            'resting_time',
            'inactivity_alerts',
          ])
            expect((now?.[key] as number) ?? 0).toBeGreaterThanOrEqual((before?.[key] as number) ?? 0);
          before = now;
        }
        expect(before).toEqual(whole.documents(userId, 'daily_activity', formatDay(number))[0]);
      }
    }
  });

  it('a training that is not over counts for nothing yet', () => {
    // ada trains on 14 March until 19:38; activity comes in whole 5 minutes.
    const volume = (moment: string) => {
      const people = seen('2025-03-14T12:08:49+01:00', moment);
      return (people.documents(ada, 'daily_activity', '2025-03-14')[0]!.contributors as Record<string, number>).training_volume!;
    };
    expect(volume('2025-03-14T19:39:59+01:00')).toBe(volume('2025-03-14T09:00:00+01:00'));
    expect(volume('2025-03-14T19:40:00+01:00')).toBeGreaterThan(volume('2025-03-14T09:00:00+01:00'));
  });

  it('stress grows through the waking hours and ends as the whole day’s document', () => {
    // ada wakes at 07:26:30.
    expect(activityAt(seconds(`${day}T07:26:30+01:00`)).stress).toBeUndefined();
    const levels = [8, 12, 16, 20, 23].map(
      hour => activityAt(seconds(`${day}T00:00:00+01:00`) + hour * 3600).stress!.stress_high as number,
    );
    expect(levels).toEqual([...levels].sort((a, b) => a - b));
    expect(activityAt(seconds('2025-02-19T06:00:00+01:00')).stress).toEqual(whole.documents(ada, 'daily_stress', day)[0]);
  });
});

it('heart rate is there up to the last sync or upload, whichever came later', () => {
  const rows = (people: ReturnType<typeof seen>) => people.heartRate(ada, 0, 2e15);
  const all = whole.heartRate(ada, 0, 2e15);
  for (const [synced, uploaded] of [
    ['2025-02-18T08:50:02+01:00', '2025-02-18T08:30:00+01:00'],
    ['2025-02-18T07:50:02+01:00', '2025-02-18T08:50:02+01:00'],
  ] as const) {
    expect(rows(seen(synced, uploaded))).toEqual(all.filter(row => row.timestamp_unix < seconds('2025-02-18T08:50:02+01:00') * 1000));
  }
});

it('a new ring is known from the first sync on the day after it was set up', () => {
  // ben's second ring of the year was set up on 23 February.
  const set = whole.undated(ben, 'ring_configuration').map(ring => String(ring.set_up_at).slice(0, 10));
  const newest = set.sort().at(-1)!;
  expect(newest > FROM).toBe(true);
  const count = (moment: string) => seen(moment).undated(ben, 'ring_configuration').length;
  expect(count(`${newest}T23:00:00-05:00`)).toBe(set.length - 1);
  expect(count(`${formatDay(Math.floor(seconds(`${newest}T12:00:00Z`) / 86_400) + 1)}T08:00:00-05:00`)).toBe(set.length);
});

it('nothing of the future is ever there', () => {
  const moments = Array.from({ length: 24 }, (_, i) => seconds('2025-02-15T00:00:00Z') + i * 17_977);
  for (const now of someOf(moments, { always: moments.slice(0, 1), more: 3 })) {
    const view = { wholeTo: -1, synced: now - 7200, uploaded: now };
    const people = showPeople(7, FROM, new Map(models.map(model => [model.person.userId, createUserRecord(model, [], view)])));
    for (const { userId } of people.persons) {
      const documents = daysOf({ from: '2025-02-14', to: '2025-02-24' }).flatMap(day =>
        resources.filter(({ dated }) => dated).flatMap(({ name }) => people.documents(userId, name, day)),
      );
      expect(documents.length).toBeGreaterThan(0);
      for (const document of documents) {
        for (const key of ['bedtime_end', 'end_datetime', 'timestamp'])
          if (document[key]) expect(seconds(document[key] as string)).toBeLessThanOrEqual(now);
        const met = document.met as Sample | undefined;
        if (met) expect(seconds(met.timestamp) + met.items.length * met.interval).toBeLessThanOrEqual(now);
      }
      expect(people.heartRate(userId, 0, 2e15).at(-1)!.timestamp_unix).toBeLessThan(now * 1000);
      expect(people.undated(userId, 'ring_configuration').every(ring => seconds(ring.set_up_at as string) <= now)).toBe(true);
    }
  }
});

it('a view that is whole up to a day shows that day and nothing after it', () => {
  const static_ = createPeople({ seed: 7, count: 3, from: FROM, to: '2025-03-02' });
  // ben's nap of that evening counts for the day after.
  expect(static_.documents(ben, 'sleep', '2025-03-03')).toEqual([]);
  expect(static_.documents(ben, 'daily_activity', '2025-03-02')).toEqual(whole.documents(ben, 'daily_activity', '2025-03-02'));
  expect(static_.to).toBe('2025-03-02');
  expect(cleo).not.toBe(ben);
});
