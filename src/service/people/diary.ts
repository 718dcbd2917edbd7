import { findDayNumber } from '../../../schema/instant.ts';
import type { Edit } from './edits.ts';
import { writeId } from './identity.ts';
import { createLife, type Life } from './life.ts';
import type { Person } from './person.ts';
import { remember } from './remember.ts';
import { type SleepReport, sleepReports } from './reports.ts';

/** A life with its edits: what documents are written from. */
export interface Diary extends Life {
  sleepsOf(day: number): SleepReport[];
  /** The identifier of a document of a kind and a day. */
  idOf(kind: string, day: number, ordinal?: number): string;
}

export function createDiary(person: Person, edits: readonly Edit[]): Diary {
  const life = createLife(person);
  const byDay = new Map<number | undefined, Edit[]>();
  for (const edit of edits) {
    if (edit.userId !== person.userId) continue;
    const day = findDayNumber(edit.day);
    byDay.set(day, [...(byDay.get(day) ?? []), edit]);
  }
  return {
    ...life,
    sleepsOf: remember(8, day => sleepReports(life, day, byDay.get(day) ?? [])),
    idOf: (kind, day, ordinal = 0) => writeId(person.seed, { person: person.index, kind, day, ordinal }),
  };
}
