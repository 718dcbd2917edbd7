import { formatDay } from '../../../../schema/instant.ts';
import type { WireDocument } from '../../../../schema/resource.ts';
import { keyOf } from '../person.ts';
import type { Plan } from '../plan.ts';
import { Random } from '../random.ts';
import type { UserRecord } from '../user-record.ts';
import type { Span } from '../zone.ts';

const HOUR = 3600;

interface Kind {
  code: string | null;
  customName?: string;
  /** How likely it is noted of a day. */
  chance(plan: Plan): number;
  /** Hours of the local clock between which it is noted. */
  hours: readonly [number, number];
  comments: readonly string[];
  /** Of what lasts, the time that it takes. */
  span?(plan: Plan): Span | undefined;
}

/** What people note: of days that were as they say. Their order is in the identifiers. */
const KINDS: readonly Kind[] = [
  {
    code: 'tag_generic_alcohol',
    chance: ({ indulgence }) => indulgence,
    hours: [20, 23],
    comments: ['two glasses of wine', 'a long evening'],
  },
  { code: 'tag_generic_sick', chance: ({ illness }) => illness, hours: [8, 20], comments: ['sore throat since noon', 'stayed in bed'] },
  {
    code: 'tag_generic_stress',
    chance: ({ stress }) => (stress > 0.5 ? 0.5 : 0),
    hours: [9, 21],
    comments: ['deadline', 'hardly a break'],
  },
  {
    code: 'tag_generic_travel',
    chance: ({ flight }) => (flight ? 0.9 : 0),
    hours: [8, 20],
    comments: ['window seat'],
    span: ({ flight }) => flight,
  },
  { code: 'custom', customName: 'Sauna', chance: () => 0.03, hours: [17, 21], comments: ['three rounds'] },
  { code: null, chance: () => 0.03, hours: [8, 22], comments: ['woke up before the alarm', 'new mattress'] },
];

/** The enhanced_tag documents of a day. */
export function enhancedTag(record: UserRecord, day: number): WireDocument[] {
  const { person, zone, planOf } = record;
  const plan = planOf(day);
  const diligence = new Random([person.seed, person.index, 'tags']).between(0.4, 1);
  return KINDS.flatMap(({ code, customName, chance, hours: [from, to], comments, span }, ordinal) => {
    const random = new Random(keyOf(person, day, 'tag', ordinal));
    const start = zone.at(day, random.integer(from * HOUR, to * HOUR));
    const lasts = span?.(plan);
    const isThere = random.chance(chance(plan) * diligence) && record.hasSynced(day, lasts?.end ?? start);
    if (!isThere) return [];
    return [
      {
        id: record.idOf('enhanced_tag', day, ordinal),
        comment: code === null || random.chance(0.4) ? random.pick(comments) : null,
        custom_name: customName ?? null,
        end_day: lasts ? formatDay(zone.local(lasts.end).day) : null,
        end_time: lasts ? zone.write(lasts.end) : null,
        start_day: formatDay(day),
        start_time: zone.write(lasts?.start ?? start),
        tag_type_code: code,
      },
    ];
  });
}
