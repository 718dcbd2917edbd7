import { csvField } from '../base/csv.ts';
import { UsageError } from '../base/errors.ts';
import { changeAccounts, listAccounts } from '../ledger/accounts.ts';
import { type FreeValue, listParticipants, noParticipantEntry, type Participant, participantEntry } from '../warehouse/participants.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import type { App } from './app.ts';
import { type BadLine, FACTS, type PersonLine } from './people-file.ts';

/** What one line says of a participant. */
export type ParticipantLine = Pick<PersonLine, 'line' | 'name' | 'facts' | 'extra'>;

export interface ImportReport {
  added: string[];
  changed: string[];
  unchanged: string[];
  /** Those of them that are no account yet. */
  without_account: string[];
  /** When there are any, nothing was stored. */
  bad: BadLine[];
}

/** What the owner of a data folder does with what a study knows of its participants. */
export const participantCommands = {
  importParticipants,
  listParticipants: ({ warehouse }: App): Promise<Participant[]> => listParticipants(warehouse),
  removeParticipants,
};

/** Stores what lines say, all of them or none; what they say nothing of stays. */
async function importParticipants({ warehouse }: App, { people }: { people: readonly ParticipantLine[] }): Promise<ImportReport> {
  return changeAccounts(warehouse, () => storeParticipants(warehouse, people));
}

/**
 * Stores what lines of a file of people tell beside who they are.
 * @returns what is wrong with them; when there is anything, nothing was stored
 */
export async function storeTold({ warehouse }: App, people: readonly ParticipantLine[]): Promise<BadLine[]> {
  const told = people.filter(({ facts, extra }) => Object.values({ ...facts, ...extra }).some(value => value !== undefined));
  return (await changeAccounts(warehouse, () => storeParticipants(warehouse, told))).bad;
}

/** Within `changeAccounts`. */
async function storeParticipants(warehouse: Warehouse, people: readonly ParticipantLine[]): Promise<ImportReport> {
  const known = new Map((await listParticipants(warehouse)).map(participant => [participant.user_id, participant]));
  const accounts = new Set((await listAccounts(warehouse)).map(({ userId }) => userId));
  const report: ImportReport = { added: [], changed: [], unchanged: [], without_account: [], bad: [] };
  const changed: Participant[] = [];
  for (const person of people) {
    const { line, name } = person;
    const before = known.get(name);
    const after = tell(before ?? { ...NOTHING, user_id: name }, person);
    const { enrolled_from: from, enrolled_until: until } = after;
    if (from !== null && until !== null && until < from) {
      report.bad.push({ line, column: 'enrolled_until', value: until, wanted: `a day not before enrolled_from, ${from}` });
    }
    if (!accounts.has(name)) report.without_account.push(name);
    if (before && textOf(before) === textOf(after)) report.unchanged.push(name);
    else {
      report[before ? 'changed' : 'added'].push(name);
      changed.push(after);
    }
  }
  if (report.bad.length) return { added: [], changed: [], unchanged: [], without_account: [], bad: report.bad };
  await warehouse.record(changed.map(participantEntry));
  return report;
}

const NOTHING = {
  group_name: null,
  enrolled_from: null,
  enrolled_until: null,
  birth_year: null,
  max_heart_rate: null,
  extra: {},
} as const satisfies Omit<Participant, 'user_id'>;

const textOf = (participant: Participant) => JSON.stringify(participantEntry(participant).row);

const or = <Value>(told: Value | undefined, before: Value): Value => (told === undefined ? before : told);

function tell(before: Participant, { facts, extra }: ParticipantLine): Participant {
  const free = Object.entries({ ...before.extra, ...extra }).flatMap(([name, value]): [string, FreeValue][] =>
    value === null ? [] : [[name, value]],
  );
  return {
    user_id: before.user_id,
    group_name: or(facts.group_name, before.group_name),
    enrolled_from: or(facts.enrolled_from, before.enrolled_from),
    enrolled_until: or(facts.enrolled_until, before.enrolled_until),
    birth_year: or(facts.birth_year, before.birth_year),
    max_heart_rate: or(facts.max_heart_rate, before.max_heart_rate),
    extra: Object.fromEntries(free),
  };
}

/** All of those named, or none; accounts and what was read of them stay. */
async function removeParticipants({ warehouse }: App, { names }: { names: readonly string[] }): Promise<{ removed: string[] }> {
  const removed = [...new Set(names)];
  await changeAccounts(warehouse, async () => {
    const known = new Set((await listParticipants(warehouse)).map(({ user_id }) => user_id));
    const unknown = removed.filter(name => !known.has(name));
    if (unknown.length) {
      throw new UsageError(
        `no participant ${unknown.map(name => JSON.stringify(name)).join(', ')}: ringneck participants export lists all`,
      );
    }
    await warehouse.record(removed.map(noParticipantEntry));
  });
  return { removed };
}

/** The participants as a CSV file from which they can be imported again. */
export function writeParticipants(participants: readonly Participant[]): string {
  const free = [...new Set(participants.flatMap(({ extra }) => Object.keys(extra)))].sort();
  const lines = participants.map(({ user_id, extra, ...facts }) => [
    user_id,
    ...FACTS.map(column => facts[column]),
    ...free.map(name => (Object.hasOwn(extra, name) ? (extra[name] ?? null) : null)),
  ]);
  return [['name', ...FACTS, ...free], ...lines]
    .map(fields => `${fields.map(field => csvField(field === null ? null : String(field))).join(',')}\n`)
    .join('');
}
