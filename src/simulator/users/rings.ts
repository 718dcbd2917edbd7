import type { WireDocument } from '../../../schema/resource.ts';
import { writeId } from './identity.ts';
import type { Person } from './person.ts';
import { Random } from './random.ts';
import type { UserRecord } from './user-record.ts';
import type { Zone } from './zone.ts';

const DESIGNS = ['heritage', 'horizon', 'balance', 'ceramic'] as const;
const COLORS = ['silver', 'stealth_black', 'glossy_black', 'titanium', 'brushed_silver', 'rose', 'cloud', 'tide', 'midnight'] as const;

/** The first day on which the fourth hardware generation was sold, 2024-10-15. */
const GEN4 = 20_011;

/** Every third person breaks or loses rings within the year; the others keep one until its battery has aged. */
function habit({ seed, index }: Person): { lifetime: number; first: number } {
  const lifetime = index % 3 === 1 ? 240 : 1150;
  return { lifetime, first: new Random([seed, index, 'rings']).integer(0, lifetime - 1) };
}

/** The ordinal of the ring that a person wears from the evening of a day. */
export function ringOn(person: Person, day: number): number {
  const { lifetime, first } = habit(person);
  return Math.floor((day - first) / lifetime);
}

/** The identifier of a ring, as a sleep names it. */
export function ringId(person: Person, ring: number): string {
  return writeId(person.seed, { person: person.index, kind: 'ring_configuration', day: ring, ordinal: 0 });
}

/** The rings worn from the night before a first day on. */
export function ringConfigurations({ person, zone, view }: UserRecord, firstDay: number): WireDocument[] {
  const oldest = ringOn(person, firstDay - 1);
  // A new ring is known from the first sync on the day after it was set up.
  const newest = Math.max(oldest, ringOn(person, Math.max(view.wholeTo, zone.local(view.synced).day - 1)));
  return Array.from({ length: newest - oldest + 1 }, (_, i) => ringDocument(person, zone, oldest + i));
}

/** The ring_configuration of a ring. */
function ringDocument(person: Person, zone: Zone, ring: number): WireDocument {
  const { lifetime, first } = habit(person);
  const setUpDay = first + ring * lifetime;
  const random = new Random([person.seed, person.index, ring, 'ring']);
  const document: WireDocument = {
    id: ringId(person, ring),
    color: random.pick(COLORS),
    design: random.pick(DESIGNS),
    firmware_version: `${random.integer(2, 3)}.${random.integer(0, 9)}.${random.integer(0, 30)}`,
    hardware_type: setUpDay < GEN4 ? 'gen3' : 'gen4',
    set_up_at: zone.write(zone.at(setUpDay, random.integer(9 * 60, 21 * 60) * 60)),
    size: new Random([person.seed, person.index, 'ring size']).integer(6, 13),
  };
  if (random.chance(0.15)) document.design = null;
  if (random.chance(0.1)) delete document.color;
  return document;
}
