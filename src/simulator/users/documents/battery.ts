import { formatInstant } from '../../../../schema/instant.ts';
import type { WireDocument } from '../../../../schema/resource.ts';
import { keyOf, type Person } from '../person.ts';
import type { Gap } from '../plan.ts';
import { Random } from '../random.ts';
import type { UserRecord } from '../user-record.ts';
import { DAY, type Span } from '../zone.ts';
import { omitSome } from './optional.ts';

const MINUTE = 60;
const HOUR = 3600;
/** A ring that lies about for longer is not in its charger: it was forgotten. */
const LONGEST_CHARGE = 90 * MINUTE;
/** Percent; a ring is charged before it is emptier. */
const LOWEST = 9;
/** Every third day or so has a charge: so many days without one there are hardly ever. */
const MOST_DAYS = 40;

/** After it the battery is full. */
interface Charge extends Span {
  /** Percent, when it begins. */
  low: number;
  /** The battery was empty: until it is full nothing is read. */
  isDead: boolean;
}

/** What the ring told of its battery on a day of UTC: each hour, and every ten minutes in its charger. */
export function ringBatteryLevel(record: UserRecord, day: number): WireDocument[] {
  const { person } = record;
  const charges = chargesAround(record, { start: day * DAY, end: (day + 1) * DAY });
  const random = new Random(keyOf(person, day, 'battery'));
  const minute = MINUTE * new Random([person.seed, person.index, 'battery minute']).integer(0, 9);
  const rows: WireDocument[] = [];
  for (let moment = day * DAY + minute; moment < (day + 1) * DAY; moment += 10 * MINUTE) {
    const charge = charges.find(({ start, end }) => start <= moment && moment < end);
    const isHourly = moment % HOUR === minute;
    if (charge ? charge.isDead : !isHourly) continue;
    const level = charge ? levelIn(charge, moment) : levelBetween(charges, moment);
    const row: WireDocument = {
      timestamp: formatInstant({ micros: moment * 1_000_000, offset: 0 }),
      timestamp_unix: moment * 1000,
      charging: charge !== undefined && level < 100,
      in_charger: charge !== undefined,
      level,
    };
    const shown = omitSome(random, row, ['charging', 'in_charger'], 0.01);
    if (record.hasSynced(day, moment)) rows.push(shown);
  }
  return rows;
}

/** Three quarters of the time in the charger fill the battery. */
function levelIn({ start, end, low }: Charge, moment: number): number {
  const share = Math.min(1, (moment - start) / (0.75 * (end - start)));
  return Math.round(low + share * (100 - low));
}

/** From full after one charge down to where the next one begins. */
function levelBetween(charges: readonly Charge[], moment: number): number {
  const before = charges.findLast(({ end }) => end <= moment);
  const next = charges.find(({ start }) => start > moment);
  if (!before || !next) return LOWEST;
  return Math.round(100 - ((100 - next.low) * (moment - before.end)) / (next.start - before.end));
}

/** The charges in a span, and one on each side of it. */
function chargesAround({ person, zone, planOf }: UserRecord, span: Span): Charge[] {
  const chargesOf = (day: number) => planOf(day).gaps.filter(isCharge);
  const [first, last] = [zone.local(span.start).day, zone.local(span.end).day];
  const found: Gap[] = [];
  for (let day = last; day > first - MOST_DAYS && found.filter(({ end }) => end <= span.start).length < 2; day--) {
    found.unshift(...chargesOf(day));
  }
  for (let day = last + 1; day < last + MOST_DAYS && !found.some(({ start }) => start >= span.end); day++) found.push(...chargesOf(day));
  return found.map((gap, i) => ({ start: gap.start, end: gap.end, isDead: gap.kind === 'empty', low: lowOf(person, gap, found[i - 1]) }));
}

const isCharge = ({ kind, start, end }: Gap) => kind === 'empty' || end - start <= LONGEST_CHARGE;

/** How empty the battery is when a charge begins. */
function lowOf(person: Person, { kind, start }: Gap, before: Gap | undefined): number {
  if (kind === 'empty') return 0;
  const perDay = new Random([person.seed, person.index, 'battery use']).between(11, 17);
  return before ? Math.max(LOWEST, 100 - (perDay * (start - before.end)) / DAY) : LOWEST;
}
