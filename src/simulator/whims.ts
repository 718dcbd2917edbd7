import { formatDay } from '../../schema/instant.ts';
import type { Diary } from './users/diary.ts';
import type { Edit } from './users/edits.ts';
import { Random } from './users/random.ts';
import { mainSleep, type SleepReport } from './users/reports.ts';

/** What somebody changes who looks at the app at a moment: last night's sleep, or a nap of today. Undefined: nothing. */
export function findWhim(diary: Diary, moment: number): Edit | undefined {
  const { person, zone } = diary;
  const random = new Random([person.seed, person.index, moment, 'edit']);
  const today = zone.local(moment).day;
  const night = mainSleep(diary.sleepsOf(today));
  // An evening nap counts for tomorrow.
  const naps = [today, today + 1].flatMap(day => diary.sleepsOf(day)).filter(({ type }) => ['sleep', 'late_nap', 'rest'].includes(type));
  const nap = naps.at(-1);
  if (nap && random.chance(0.7)) return editNap(diary, random, nap);
  return night && editNight(diary, random, night);
}

const about = ({ person }: Diary, { day, id }: SleepReport) => ({ userId: person.userId, day: formatDay(day), id });

function editNap(diary: Diary, random: Random, nap: SleepReport): Edit {
  if (random.chance(0.4)) return { kind: 'delete-sleep', ...about(diary, nap) };
  const confirmed = nap.type !== 'rest';
  return { kind: 'retype-sleep', ...about(diary, nap), type: confirmed ? random.pick(['rest', 'deleted']) : 'sleep' };
}

function editNight(diary: Diary, random: Random, night: SleepReport): Edit {
  if (random.chance(0.08)) return { kind: 'delete-sleep', ...about(diary, night) };
  if (random.chance(0.08)) return { kind: 'retype-sleep', ...about(diary, night), type: 'deleted' };
  if (random.chance(0.25)) return { kind: 'reanalyse-day', userId: diary.person.userId, day: formatDay(night.day) };
  // Waking is moved back only: nobody sleeps in the future.
  const [startShift, endShift] = [300 * random.integer(-6, 6), -30 * random.integer(1, 40)];
  return { kind: 'edit-bedtime', ...about(diary, night), startShift, endShift };
}
