import { formatDay } from '../../../../schema/instant.ts';
import type { WireDocument } from '../../../../schema/resource.ts';
import { SESSION_INTERVAL } from '../moments.ts';
import { keyOf } from '../person.ts';
import { Random } from '../random.ts';
import type { UserRecord } from '../user-record.ts';
import { omitSome } from './optional.ts';

/** The sessions of a day. */
export function session(record: UserRecord, day: number): WireDocument[] {
  return record.momentsOf(day).map(moment => {
    const timestamp = record.zone.write(moment.start);
    const samples = (items: (number | null)[] | undefined) => (items ? { interval: SESSION_INTERVAL, items, timestamp } : null);
    const document: WireDocument = {
      id: record.idOf('session', day, moment.ordinal),
      day: formatDay(day),
      end_datetime: record.zone.write(moment.end),
      heart_rate: samples(moment.heartRate),
      heart_rate_variability: samples(moment.hrv),
      mood: moment.mood,
      motion_count: samples(moment.motion),
      start_datetime: timestamp,
      type: moment.kind,
    };
    const random = new Random(keyOf(record.person, day, 'session document', moment.ordinal));
    return omitSome(random, document, ['heart_rate', 'heart_rate_variability', 'motion_count', 'mood'], 0.04);
  });
}
