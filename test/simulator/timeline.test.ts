import { describe, expect, it } from 'vitest';
import { resources } from '../../schema/index.ts';
import { dayNumberOf, formatDay } from '../../schema/instant.ts';
import type { WireDocument } from '../../schema/resource.ts';
import { restAround } from '../../src/simulator/users/illness.ts';
import { advanceTo, clockOf, openTimeline, REAL, short, userIds } from './open-timeline.ts';

const documents = (
  timeline: ReturnType<typeof openTimeline>['timeline'],
  userId: string,
  name: string,
  day: string,
): Promise<WireDocument[]> => timeline.source.list(userId, resources.find(each => each.name === name)!, { from: day, to: day, limit: 100 });

describe('a timeline with a last day', () => {
  it('stands still at the end of that day for everybody, and shows nothing after it', async () => {
    const { timeline, told, timer } = openTimeline();
    // The day ends at 4 a.m., last of all for ben in New York.
    expect(clockOf(timeline)).toBe('2025-02-01T09:00:00.000+00:00');
    expect(timer.ms).toBeUndefined();
    for (const userId of userIds(timeline)) {
      expect(await documents(timeline, userId, 'daily_activity', '2025-01-31')).toHaveLength(1);
      for (const { name } of resources.filter(({ dated }) => dated))
        expect(await documents(timeline, userId, name, '2025-02-01')).toEqual([]);
    }
    expect(timeline.people().map(({ view }) => view.synced)).toEqual([0, 0, 0]);
    expect(told).toEqual([]);
  });

  it('goes on when the clock runs: what is due happens, and the timer waits for what is due next', async () => {
    const { timeline, told, real, timer } = openTimeline();
    await timeline.setSpeed(60);
    // ada, who is at 10:00, has had uploads in her activity day that began at 4.
    expect(timer.ms).toBeGreaterThanOrEqual(50);
    real.now += 60_000;
    timer.fire();
    await timeline.setSpeed(60);
    expect(clockOf(timeline)).toBe('2025-02-01T10:00:00.000+00:00');
    expect(told.length).toBeGreaterThan(0);
    // Uploads come every half hour of three people: the next is due within half a minute.
    expect(timer.ms).toBeLessThanOrEqual(30_000);
  });

  it('however fast the clock is, what is due within 50 ms happens together', async () => {
    const { timeline, timer } = openTimeline({ speed: 10_000 });
    expect(timer.ms).toBeGreaterThanOrEqual(50);
    await timeline.setSpeed(0);
    expect(timer.ms).toBeUndefined();
  });
});

describe('a sync', () => {
  it('raises a create for each document that it brings, and an update for what it changes', async () => {
    const { timeline } = openTimeline();
    const [ada] = userIds(timeline);
    // She woke at 07:26:30.
    await advanceTo(timeline, '2025-02-18T08:00:00+01:00');
    const before = timeline.people()[0]!.view.synced;
    expect(before).toBe(Date.parse('2025-02-17T20:26:33+01:00') / 1000);
    const morning = await timeline.sync(ada);
    expect(short(morning)).toEqual([
      'create daily_cardiovascular_age',
      'create daily_readiness',
      'create daily_resilience',
      'create daily_sleep',
      'create daily_spo2',
      'create sleep',
      'create sleep_time',
      'update daily_activity',
    ]);
    expect(morning.every(({ user_id }) => user_id === ada)).toBe(true);
    // Real time, in ada's zone.
    expect(new Set(morning.map(({ event_time }) => event_time))).toEqual(new Set(['2025-02-18T08:00:00.000+01:00']));
    const [sleep] = await documents(timeline, ada, 'sleep', '2025-02-18');
    expect(morning.find(({ data_type }) => data_type === 'sleep')!.object_id).toBe(sleep!.id);
    expect(await timeline.sync(ada)).toEqual([]);
  });

  it('after days without one brings all of them at once', async () => {
    const { timeline, told } = openTimeline();
    const [, , cleo] = userIds(timeline);
    // Her phone is away from 22 to 25 February.
    await advanceTo(timeline, '2025-02-26T08:09:56+05:45');
    const days = ['2025-02-22', '2025-02-23', '2025-02-24', '2025-02-25', '2025-02-26'];
    for (const day of days) expect(await documents(timeline, cleo, 'sleep', day)).toEqual([]);
    told.length = 0;
    await advanceTo(timeline, '2025-02-26T08:09:57+05:45');
    const events = told.map(({ event }) => event).filter(({ user_id }) => user_id === cleo);
    for (const name of ['sleep', 'daily_sleep', 'daily_readiness', 'daily_spo2', 'daily_resilience']) {
      const created = events.filter(({ event_type, data_type }) => event_type === 'create' && data_type === name);
      const ids = await Promise.all(days.map(async day => (await documents(timeline, cleo, name, day))[0]!.id));
      expect(created.map(({ object_id }) => object_id)).toEqual(ids);
    }
    const activity = events.filter(({ data_type }) => data_type === 'daily_activity');
    // 21 February was there in part, 22 to 25 are whole, 26 has begun.
    expect(activity.map(({ event_type }) => event_type)).toEqual(['update', 'create', 'create', 'create', 'create', 'create']);
    expect(events.filter(({ data_type }) => data_type === 'session').map(({ event_type }) => event_type)).toEqual([
      'create',
      'create',
      'create',
    ]);
  });
});

describe('an upload in the background', () => {
  it('raises events of activity and stress only, and the activity grows', async () => {
    const { timeline, told } = openTimeline();
    const [ada] = userIds(timeline);
    await advanceTo(timeline, '2025-02-18T13:00:00+01:00');
    const before = (await documents(timeline, ada, 'daily_activity', '2025-02-18'))[0]!;
    told.length = 0;
    await advanceTo(timeline, '2025-02-18T17:00:00+01:00');
    const mine = told.map(({ event }) => event).filter(({ user_id }) => user_id === ada);
    expect(short(mine)).toEqual(['update daily_activity', 'update daily_stress']);
    const after = (await documents(timeline, ada, 'daily_activity', '2025-02-18'))[0]!;
    expect(mine.find(({ data_type }) => data_type === 'daily_activity')!.object_id).toBe(before.id);
    const length = (document: WireDocument) => (document.met as { items: unknown[] }).items.length;
    expect(length(after) - length(before)).toBeGreaterThanOrEqual(30);
    expect(after.steps as number).toBeGreaterThanOrEqual(before.steps as number);
  });
});

describe('an edit', () => {
  /** ada at noon of 18 February: a night, no nap yet. */
  async function noon() {
    const opened = openTimeline();
    const [ada] = userIds(opened.timeline);
    await advanceTo(opened.timeline, '2025-02-18T12:20:00+01:00');
    const [night] = await documents(opened.timeline, ada, 'sleep', '2025-02-18');
    return { ...opened, ada, about: { userId: ada, day: '2025-02-18', id: night!.id as string }, night: night! };
  }

  it('a nap is recorded, deleted, and gone: a delete for it and updates for what it changed', async () => {
    const { timeline, ada } = await noon();
    const nap = await timeline.nap(ada, 60);
    expect(nap.day).toBe('2025-02-18');
    expect(short(nap.events)).toContain('create sleep');
    expect(short(nap.events)).toContain('update daily_sleep');
    const [sleep] = (await documents(timeline, ada, 'sleep', nap.day)).filter(({ id }) => id === nap.id);
    expect(sleep).toMatchObject({ type: 'sleep', bedtime_end: '2025-02-18T12:20:00.000+01:00', time_in_bed: 3600 });
    const resource = resources.find(({ name }) => name === 'sleep')!;
    expect(resource.document.safeParse(sleep).success).toBe(true);

    const deleted = await timeline.edit({ kind: 'delete-sleep', userId: ada, day: nap.day, id: nap.id });
    expect(short(deleted)).toEqual(['delete sleep', 'update daily_readiness', 'update daily_sleep', 'update sleep']);
    expect(deleted.find(({ event_type }) => event_type === 'delete')!.object_id).toBe(nap.id);
    expect(await timeline.source.find(ada, resource, nap.id)).toBeUndefined();
    // Another one has another name.
    expect((await timeline.nap(ada, 60)).id).not.toBe(nap.id);
  });

  it('another type of the night takes away what was said of the day', async () => {
    const { timeline, about } = await noon();
    const events = await timeline.edit({ kind: 'retype-sleep', ...about, type: 'deleted' });
    expect(short(events)).toEqual(['delete daily_readiness', 'delete daily_sleep', 'delete daily_spo2', 'update sleep']);
  });

  it('another bedtime updates the sleep and its scores', async () => {
    const { timeline, about, ada, night } = await noon();
    const events = await timeline.edit({ kind: 'edit-bedtime', ...about, startShift: -1800, endShift: 0 });
    expect(short(events)).toEqual(['update daily_readiness', 'update daily_sleep', 'update sleep']);
    const [moved] = await documents(timeline, ada, 'sleep', '2025-02-18');
    expect(moved!.time_in_bed).toBe((night.time_in_bed as number) + 1800);
  });

  it('of a sleep that is not there, or into the future, is refused and changes nothing', async () => {
    const { timeline, about, told } = await noon();
    const before = told.length;
    await expect(timeline.edit({ kind: 'delete-sleep', ...about, id: 'unknown' })).rejects.toMatchObject({ status: 404 });
    await expect(timeline.edit({ kind: 'reanalyse-day', userId: about.userId, day: '2025-02-19' })).rejects.toMatchObject({ status: 404 });
    await expect(timeline.edit({ kind: 'delete-sleep', ...about, userId: 'nobody' })).rejects.toMatchObject({ status: 404 });
    await expect(timeline.edit({ kind: 'edit-bedtime', ...about, startShift: 0, endShift: 18_000 })).rejects.toMatchObject({ status: 422 });
    expect(told.length).toBe(before);
  });
});

it('a rest mode comes when it has begun, and days later an update says when it ended', async () => {
  const { timeline, told } = openTimeline();
  const days = Array.from({ length: 90 }, (_, i) => dayNumberOf('2025-02-03') + i);
  const [found] = timeline.people().flatMap(({ person }) =>
    days.flatMap(day => {
      const rest = restAround(person, day);
      return rest?.first === day && rest.last > day ? [{ userId: person.userId, rest }] : [];
    }),
  );
  const { userId, rest } = found!;
  await advanceTo(timeline, `${formatDay(rest.first)}T00:00:00Z`);
  told.length = 0;
  const commands: string[] = [];
  for (let day = rest.first; day <= rest.last + 2; day++) {
    await timeline.advance(86_400);
    const own = told.splice(0).map(({ event }) => event);
    commands.push(...own.flatMap(event => (event.user_id === userId && event.data_type === 'rest_mode_period' ? event.event_type : [])));
  }
  expect(commands[0]).toBe('create');
  expect(new Set(commands.slice(1))).toEqual(new Set(['update']));
  expect(await documents(timeline, userId, 'rest_mode_period', formatDay(rest.first))).toMatchObject([
    { start_day: formatDay(rest.first), end_day: formatDay(rest.last + 1) },
  ]);
});

it('people edit their sleep by themselves: in a month all kinds of edits and events come about', async () => {
  const { timeline, told } = openTimeline();
  await timeline.advance(40 * 86_400);
  const kinds = new Set(told.map(({ event }) => `${event.event_type} ${event.data_type}`));
  for (const kind of [
    'update sleep',
    'update daily_sleep',
    'update daily_readiness',
    'delete daily_sleep',
    'create session',
    'create vo2_max',
  ])
    expect(kinds).toContain(kind);
  expect(new Set(told.map(({ eventId }) => eventId)).size).toBe(told.length);
});

describe('a timeline without a last day', () => {
  it('begins now, with what has synced and been uploaded by now', async () => {
    const { timeline, told, real, timer } = openTimeline({ to: undefined as never, speed: 1 });
    expect(clockOf(timeline)).toBe('2025-03-01T12:00:00.000+00:00');
    const synced = timeline.people().map(({ view }) => new Date(view.synced * 1000).toISOString());
    // ada synced at 08:51:04 and will at 13:39:43, ben not since he woke, cleo at 08:48:42.
    expect(synced[0]).toBe('2025-03-01T07:51:04.000Z');
    expect(synced[2]).toBe('2025-03-01T03:03:42.000Z');
    const [ada] = userIds(timeline);
    expect(await documents(timeline, ada, 'sleep', '2025-03-01')).toHaveLength(1);
    expect((await documents(timeline, ada, 'daily_activity', '2025-03-01'))[0]!.timestamp).toBe('2025-03-01T04:00:00.000+01:00');
    expect(await documents(timeline, ada, 'sleep', '2025-03-02')).toEqual([]);
    expect(told).toEqual([]);
    expect(timer.ms).toBeLessThanOrEqual(1_800_000);
    real.now = REAL + 100 * 60_000;
    timer.fire();
    await timeline.setSpeed(1);
    expect(new Date(timeline.people()[0]!.view.synced * 1000).toISOString()).toBe('2025-03-01T12:39:43.000Z');
  });
});

it('when the machine’s clock is set back nothing is unknown again, whatever happens then', async () => {
  const { timeline, real } = openTimeline({ to: undefined as never, speed: 1 });
  const [ada] = userIds(timeline);
  real.now += 3 * 3_600_000;
  const nap = await timeline.nap(ada, 30);
  const synced = Date.parse('2025-03-01T15:00:00Z') / 1000;
  expect(timeline.people()[0]!.view).toMatchObject({ synced, uploaded: synced });
  const sleep = resources.find(({ name }) => name === 'sleep')!;
  for (const hours of [2, 7]) {
    real.now -= hours * 3_600_000;
    expect(clockOf(timeline)).toBe('2025-03-01T15:00:00.000+00:00');
    expect(await timeline.sync(ada)).toEqual([]);
    expect(timeline.people()[0]!.view).toMatchObject({ synced, uploaded: synced });
    expect(await timeline.source.find(ada, sleep, nap.id)).toMatchObject({ id: nap.id });
  }
});
