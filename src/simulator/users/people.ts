import { resources } from '../../../schema/index.ts';
import { findDayNumber, formatDay } from '../../../schema/instant.ts';
import { findIdOf, orderOfId, type Resource, type WireDocument } from '../../../schema/resource.ts';
import { itemAt } from '../../base/items.ts';
import { createUserModel } from './create-user-model.ts';
import { dailyActivity } from './documents/activity.ts';
import { ringBatteryLevel } from './documents/battery.ts';
import { dailySleep } from './documents/daily-sleep.ts';
import { declared, declaredOfDay } from './documents/declared.ts';
import { dailySpo2, vo2Max } from './documents/oxygen.ts';
import { dailyReadiness } from './documents/readiness.ts';
import { restModePeriod } from './documents/rest-mode.ts';
import { session } from './documents/session.ts';
import { sleep } from './documents/sleep.ts';
import { sleepTime } from './documents/sleep-time.ts';
import { dailyResilience, dailyStress } from './documents/stress.ts';
import { enhancedTag } from './documents/tags.ts';
import { dailyCardiovascularAge } from './documents/vascular-age.ts';
import { workout } from './documents/workout.ts';
import type { Edit } from './edits.ts';
import { SOURCES } from './heart-rate.ts';
import { findName } from './identity.ts';
import { createPerson, type Person } from './person.ts';
import { ringConfigurations } from './rings.ts';
import type { UserModel } from './user-model.ts';
import { createUserRecord, type UserRecord } from './user-record.ts';
import { wholeView } from './view.ts';

/** A row of the heart-rate series as it travels (specification 2.14). */
export interface HeartRateRow extends WireDocument {
  timestamp: string;
  timestamp_unix: number;
  bpm: number;
  source: string;
}

/** Generated people: everything about them is a function of seed, person and day, and of the edits. */
export interface People {
  readonly persons: readonly Person[];
  /** First and last day of which anything exists. */
  readonly from: string;
  readonly to: string;
  /** The dated documents of one day, of rows a day of UTC, by identifier; none for an unknown user, resource or a day outside. */
  documents(userId: string, resourceName: string, day: string): WireDocument[];
  /** The day a document belongs to, read from its identifier; undefined when it cannot be one of this user and resource. */
  findDay(userId: string, resourceName: string, id: string): string | undefined;
  /** The documents of an undated resource, by identifier; none for an unknown user or another resource. */
  undated(userId: string, resourceName: string): WireDocument[];
  /** Rows from a moment (microseconds since the Unix epoch) to before another, ascending; at most `limit`. */
  heartRate(userId: string, fromMicros: number, toMicros: number, limit?: number): HeartRateRow[];
  personalInfo(userId: string): WireDocument | undefined;
}

/** Writes the documents of a day; of undated resources all, the day is the first then. */
type Write = (record: UserRecord, day: number) => WireDocument[];

/** Documents that are written from a user’s record. Those of any other type have values that its declaration allows. */
const dated = writers(
  {
    daily_readiness: dailyReadiness,
    daily_sleep: dailySleep,
    daily_activity: dailyActivity,
    daily_spo2: dailySpo2,
    vo2_max: vo2Max,
    daily_resilience: dailyResilience,
    sleep_time: sleepTime,
    daily_stress: dailyStress,
    sleep,
    session,
    daily_cardiovascular_age: dailyCardiovascularAge,
    enhanced_tag: enhancedTag,
    rest_mode_period: restModePeriod,
    ring_battery_level: ringBatteryLevel,
    workout,
  },
  resource => resource.dated && ((record, day) => declaredOfDay(resource, record, day)),
);
const undated = writers(
  { ring_configuration: ringConfigurations },
  resource => !resource.dated && (record => [declared(resource, record)]),
);

/** What writes each resource that `byDeclaration` has something for. */
function writers(own: Readonly<Record<string, Write>>, byDeclaration: (resource: Resource) => Write | false): Map<string, Write> {
  return new Map(
    resources.flatMap(resource => {
      const byDefault = byDeclaration(resource);
      if (!byDefault) return [];
      const write = own[resource.name] ?? byDefault;
      return [[resource.name, (record: UserRecord, day: number) => write(record, day).sort(byIdOf(resource))] as const];
    }),
  );
}

export interface PeopleOptions {
  seed: number;
  count: number;
  /** First and last day of which anything exists. */
  from: string;
  to: string;
  edits?: readonly Edit[];
}

/** The people of a seed. Throws when the range is none. */
export function createPeople({ seed, count, from, to, edits = [] }: PeopleOptions): People {
  const [first, last] = [findDayNumber(from), findDayNumber(to)];
  if (first === undefined || last === undefined || first > last) throw new RangeError(`no range of days: ${from} to ${to}`);
  const models = createUserModels(seed, count);
  return showPeople(seed, from, new Map(models.map(model => [model.person.userId, createUserRecord(model, edits, wholeView(last))])));
}

/** The models of the people of a seed. */
export function createUserModels(seed: number, count: number): UserModel[] {
  return Array.from({ length: count }, (_, index) => createUserModel(createPerson(seed, index)));
}

/** People as their records show them from a first day on; in the order of their indexes, by user. */
export function showPeople(seed: number, from: string, records: ReadonlyMap<string, UserRecord>): People {
  const first = findDayNumber(from);
  if (first === undefined) throw new RangeError(`no day: ${from}`);
  const persons = [...records.values()].map(({ person }) => person);

  return {
    persons,
    from,
    get to() {
      let last = first;
      for (const { lastDay } of records.values()) last = Math.max(last, lastDay);
      return formatDay(last);
    },
    documents(userId, resourceName, day) {
      const record = records.get(userId);
      const number = findDayNumber(day);
      const write = dated.get(resourceName);
      if (!record || !write || number === undefined || number < first || number > record.lastDay) return [];
      return write(record, number);
    },
    findDay(userId, resourceName, id) {
      const name = findName(seed, resourceName, id);
      const record = records.get(userId);
      if (!name || !record || name.person !== record.person.index) return undefined;
      return name.day < first || name.day > record.lastDay ? undefined : formatDay(name.day);
    },
    undated(userId, resourceName) {
      const record = records.get(userId);
      return (record && undated.get(resourceName)?.(record, first)) ?? [];
    },
    heartRate(userId, fromMicros, toMicros, limit = Number.POSITIVE_INFINITY) {
      const record = records.get(userId);
      return record ? heartRateRows(record, first, fromMicros / 1000, toMicros / 1000, limit) : [];
    },
    personalInfo(userId) {
      const person = records.get(userId)?.person;
      if (!person) return undefined;
      const { age, weightKg: weight, heightM: height, sex, name } = person;
      return { id: userId, age, weight, height, biological_sex: sex, email: `${name}@example.org` };
    },
  };
}

const byIdOf = (resource: Resource) => {
  const orderOf = (document: WireDocument) => orderOfId(resource, findIdOf(resource, document) ?? '');
  return (a: WireDocument, b: WireDocument) => (orderOf(a) < orderOf(b) ? -1 : 1);
};

/** Rows by time in milliseconds, from the local day `first` to the last moment that is there. */
function heartRateRows({ zone, beatsOf, view }: UserRecord, first: number, from: number, to: number, limit: number): HeartRateRow[] {
  const rows: HeartRateRow[] = [];
  const begin = Math.max(from, zone.at(first, 0) * 1000);
  const end = Math.min(to, Math.max(zone.at(view.wholeTo + 1, 0), view.synced, view.uploaded) * 1000);
  if (!(begin < end)) return rows;
  const write = createWriter();
  // An activity day begins at 4 a.m.: the night before a day is the end of the day before.
  for (let day = zone.local(Math.floor(begin / 1000)).day - 1; zone.at(day, 0) * 1000 < end && rows.length < limit; day++) {
    const { at, bpm, source } = beatsOf(day);
    for (let i = 0; i < at.length && rows.length < limit; i++) {
      const moment = at[i] ?? end;
      if (moment >= end) return rows;
      if (moment < begin) continue;
      rows.push({ timestamp: write(moment), timestamp_unix: moment, bpm: itemAt(bpm, i), source: itemAt(SOURCES, itemAt(source, i)) });
    }
  }
  return rows;
}

/** `00:00:` to `23:59:`. Rows are many, and writing them is most of their cost. */
const CLOCKS = Array.from({ length: 1440 }, (_, minute) => `${pad(Math.floor(minute / 60), 2)}:${pad(minute % 60, 2)}:`);

/** Writes moments in UTC; most share their day with the one before. */
function createWriter(): (millis: number) => string {
  let midnight = Number.NaN;
  let date = '';
  return millis => {
    const own = Math.floor(millis / 86_400_000) * 86_400_000;
    if (own !== midnight) {
      midnight = own;
      date = `${formatDay(own / 86_400_000)}T`;
    }
    const minute = Math.floor((millis - own) / 60_000);
    const rest = pad(millis - own - minute * 60_000, 5);
    return `${date}${CLOCKS[minute]}${rest.slice(0, 2)}.${rest.slice(2)}+00:00`;
  };
}

function pad(number: number, digits: number): string {
  return String(number).padStart(digits, '0');
}
