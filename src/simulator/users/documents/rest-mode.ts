import { formatDay } from '../../../../schema/instant.ts';
import type { WireDocument } from '../../../../schema/resource.ts';
import { type Rest, restAround } from '../illness.ts';
import { keyOf } from '../person.ts';
import { Random } from '../random.ts';
import type { UserRecord } from '../user-record.ts';

const HOUR = 3600;
const SYMPTOMS = ['fever', 'headache', 'cough', 'sore_throat', 'fatigue', 'runny_nose'] as const;

/** The rest_mode_period that begins on a day: it goes on until the illness is over, and is there as far as the person has synced. */
export function restModePeriod(record: UserRecord, day: number): WireDocument[] {
  const { person, zone } = record;
  const rest = restAround(person, day);
  const random = new Random(keyOf(person, day, 'rest mode'));
  const start = zone.at(day, random.integer(8 * HOUR, 20 * HOUR));
  if (rest?.first !== day || !record.hasSynced(day, start)) return [];
  const end = zone.at(rest.last + 1, random.integer(7 * HOUR, 11 * HOUR));
  const isOver = record.hasSynced(rest.last + 1, end);
  return [
    {
      id: record.idOf('rest_mode_period', day),
      end_day: isOver ? formatDay(rest.last + 1) : null,
      end_time: isOver ? zone.write(end) : null,
      episodes: episodesOf(record, rest, start),
      start_day: formatDay(day),
      start_time: zone.write(start),
    },
  ];
}

/** What the person notes of being ill, at most once a day. */
function episodesOf({ person, zone, hasSynced }: UserRecord, { first, last }: Rest, start: number): WireDocument[] {
  const days = Array.from({ length: last - first + 1 }, (_, nth) => first + nth);
  return days.flatMap(day => {
    const random = new Random(keyOf(person, day, 'episode'));
    const moment = day === first ? start + 60 * random.integer(1, 30) : zone.at(day, random.integer(8 * HOUR, 21 * HOUR));
    if (!random.chance(0.7) || !hasSynced(day, moment)) return [];
    const tags = SYMPTOMS.filter(() => random.chance(0.35));
    return [{ tags, timestamp: zone.write(moment) }];
  });
}
