import { expect, test } from 'vitest';
import type { Sample } from '../../schema/fields.ts';
import type { WireDocument } from '../../schema/resource.ts';
import { advanceTo, openTimeline, short, userIds } from './open-timeline.ts';
import { activity, sleeps } from './served.ts';

const micros = (moment: string) => Date.parse(moment) * 1000;

test('a nap is in the heart rate and in the activity of its time, and nothing before it changes', async () => {
  const { timeline } = openTimeline();
  const [ada] = userIds(timeline);
  await advanceTo(timeline, '2025-02-01T13:00:10Z');
  await timeline.sync(ada);
  const read = (from: string, to: string) => timeline.source.heartRate(ada, { from: micros(from), to: micros(to), limit: 5000 });
  const before = await read('2025-02-01T00:00:00Z', '2025-02-01T12:15:00Z');
  const awake = await read('2025-02-01T12:15:00Z', '2025-02-01T13:00:00Z');
  const [day] = await activity(timeline, ada, '2025-02-01');
  const nap = await timeline.nap(ada, 45);
  expect(short(nap.events)).toContain('update daily_activity');

  const [document] = (await sleeps(timeline, ada, nap.day)).filter(({ id }) => id === nap.id);
  expect(document).toMatchObject({ bedtime_start: '2025-02-01T13:15:00.000+01:00', bedtime_end: '2025-02-01T14:00:00.000+01:00' });
  expect(await read('2025-02-01T00:00:00Z', '2025-02-01T12:15:00Z')).toEqual(before);
  // Its samples of 5 minutes, as at night.
  const asleep = await read('2025-02-01T12:15:00Z', '2025-02-01T13:00:00Z');
  expect(awake.some(({ source }) => source === 'awake')).toBe(true);
  expect(new Set(asleep.map(({ source }) => source))).toEqual(new Set(['sleep']));
  const samples = (document!.heart_rate as Sample).items.filter(item => item !== null);
  expect(asleep.map(({ bpm }) => bpm)).toEqual(samples);
  // From 4 a.m. to a quarter past one there are 555 minutes, and 45 of sleep: 9 digits of rest.
  const [rested] = await activity(timeline, ada, '2025-02-01');
  const classes = (of: WireDocument | undefined) => of!.class_5_min as string;
  expect(classes(rested).slice(111, 120)).toBe('111111111');
  expect(classes(day).slice(111, 120)).not.toBe('111111111');
  expect(classes(rested).slice(0, 111)).toBe(classes(day).slice(0, 111));
});

test('a sync at night serves the sleep without an end, and the one after it the same sleep with its end', async () => {
  const { timeline } = openTimeline();
  const [ada] = userIds(timeline);
  await advanceTo(timeline, '2025-02-18T01:01:13Z');
  expect(short(await timeline.sync(ada))).toContain('create sleep');
  const [night] = await sleeps(timeline, ada, '2025-02-18');
  expect(night).toMatchObject({ bedtime_start: '2025-02-18T00:50:30.000+01:00', bedtime_end: null });
  await expect(timeline.edit({ kind: 'delete-sleep', userId: ada, day: '2025-02-18', id: night!.id as string })).rejects.toMatchObject({
    status: 422,
    detail: [{ loc: ['body', 'id'], msg: 'The sleep goes on' }],
  });
  await advanceTo(timeline, '2025-02-18T07:00:00Z');
  await timeline.sync(ada);
  const [over] = await sleeps(timeline, ada, '2025-02-18');
  expect(over).toMatchObject({ id: night!.id, bedtime_end: '2025-02-18T07:26:30.000+01:00', type: 'long_sleep' });
});

test.each([
  ['a night', 'sleep', 'A sleep of this type lasts 15 minutes to 3 hours'],
  ['a night', 'late_nap', 'A late nap ends after 6 p.m.'],
] as const)('%s is no %s', async (_, type, msg) => {
  const { timeline } = openTimeline();
  const [ada] = userIds(timeline);
  const night = (await sleeps(timeline, ada, '2025-01-31')).find(each => each.type === 'long_sleep')!;
  await expect(timeline.edit({ kind: 'retype-sleep', userId: ada, day: '2025-01-31', id: night.id as string, type })).rejects.toMatchObject(
    {
      status: 422,
      detail: [{ loc: ['body', 'type'], msg }],
    },
  );
});

test('a nap of 15 minutes is all sleep, and is no long sleep', async () => {
  const { timeline } = openTimeline();
  const [ada] = userIds(timeline);
  await advanceTo(timeline, '2025-02-02T14:00:00Z');
  const { day, id } = await timeline.nap(ada, 15);
  const nap = (await sleeps(timeline, ada, day)).find(each => each.id === id)!;
  expect(nap).toMatchObject({ type: 'sleep', time_in_bed: 900, total_sleep_duration: 900 });
  await expect(timeline.edit({ kind: 'retype-sleep', userId: ada, day, id, type: 'long_sleep' })).rejects.toMatchObject({
    detail: [{ msg: 'A long sleep lasts more than 3 hours' }],
  });
});

test('a bedtime that makes a nap longer than 3 hours, a night shorter, or a nap end on the other side of 6 p.m. is refused and changes nothing', async () => {
  const { timeline } = openTimeline();
  const [ada] = userIds(timeline);
  await advanceTo(timeline, '2025-02-02T15:00:00Z');
  const nap = await timeline.nap(ada, 170);
  await advanceTo(timeline, '2025-02-02T17:30:00Z');
  const late = await timeline.nap(ada, 60);
  const night = (await sleeps(timeline, ada, '2025-02-02')).find(each => each.type === 'long_sleep')!;
  const before = [await sleeps(timeline, ada, nap.day), await sleeps(timeline, ada, late.day)];
  const move = (day: string, id: string, startShift: number, endShift: number) =>
    timeline.edit({ kind: 'edit-bedtime', userId: ada, day, id, startShift, endShift });
  const refused = (field: string, msg: string) => ({ status: 422, detail: [{ loc: ['body', field], msg }] });

  await expect(move(nap.day, nap.id, -10_800, 0)).rejects.toMatchObject(
    refused('startShift', 'A sleep of this type lasts 15 minutes to 3 hours'),
  );
  await expect(move(nap.day, nap.id, 7200, 7800)).rejects.toMatchObject(refused('endShift', 'What ends after 6 p.m. is a late nap'));
  await expect(move(late.day, late.id, 0, -2100)).rejects.toMatchObject(refused('endShift', 'A late nap ends after 6 p.m.'));
  expect([await sleeps(timeline, ada, nap.day), await sleeps(timeline, ada, late.day)]).toEqual(before);
  // Of each but the last there are more than three hours left.
  const shorten = () => move(night.day as string, night.id as string, 10_800, 0);
  for (let left = night.time_in_bed as number; left - 10_800 > 10_800; left -= 10_800) await shorten();
  await expect(shorten()).rejects.toMatchObject(refused('startShift', 'A long sleep lasts more than 3 hours'));
  // Ten minutes more make it three hours to the second.
  await move(nap.day, nap.id, -600, 0);
  expect((await sleeps(timeline, ada, nap.day)).find(({ id }) => id === nap.id)).toMatchObject({ type: 'sleep', time_in_bed: 10_800 });
});
