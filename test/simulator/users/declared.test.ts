import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  choice,
  day,
  flag,
  identifier,
  instant,
  instantOrNull,
  integer,
  integerBetween,
  number,
  numberBetween,
  sample,
  text,
} from '../../../schema/fields.ts';
import { findDayNumber } from '../../../schema/instant.ts';
import { resource, type WireDocument } from '../../../schema/resource.ts';
import { declared, declaredOfDay } from '../../../src/simulator/users/documents/declared.ts';
import { createUserModels } from '../../../src/simulator/users/people.ts';
import { createUserRecord } from '../../../src/simulator/users/user-record.ts';
import { wholeView } from '../../../src/simulator/users/view.ts';
import { daysOf, findStrange } from './conformity.ts';

const hydration = resource({
  path: 'hydration',
  dataType: 'hydration',
  summary: 'What a person drank.',
  scope: 'daily',
  specified: [],
  endDay: 'included',
  startsAt: 'start',
  document: z.object({
    id: identifier('Identifier'),
    day: day('Day'),
    end: instant('End'),
    start: instant('Start'),
    seen: instantOrNull('Seen'),
    glasses: integerBetween(3, 5, 'Glasses'),
    share: numberBetween(0.1, 0.2, 'Share', 'share'),
    volume: integer('Volume', 'ml'),
    warmth: number('Warmth', '°C').nullish(),
    kept: text('Kept').optional(),
    cold: flag('Cold').nullable(),
    about: z.object({ word: choice(['water', 'tea'], 'What').nullish(), other: z.object({ day: day('Another') }).nullish() }),
    flow: sample('Flow', 'ml/min').nullish(),
  }),
});
const year = daysOf({ from: '2025-01-01', to: '2025-12-31' }).map(each => findDayNumber(each)!);
const [ada, ben] = createUserModels(7, 2);
const recordOf = (model = ada!, view = wholeView(year.at(-1)!)) => createUserRecord(model, [], view);
const write = (model = ada!) => year.flatMap(number => declaredOfDay(hydration, recordOf(model), number));

test('a type known by its declaration alone has one document a day, with values that it allows', () => {
  const documents = write();
  expect(documents.map(({ day }) => day)).toEqual(daysOf({ from: '2025-01-01', to: '2025-12-31' }));
  for (const document of documents) {
    expect(hydration.document.safeParse(document).error).toBeUndefined();
    expect(findStrange(hydration.document, document)).toEqual([]);
    expect(Date.parse(document.start as string)).toBeLessThan(Date.parse(document.end as string));
  }
  const seen = (of: (document: WireDocument) => unknown) => [...new Set(documents.map(of))].sort();
  expect(seen(({ glasses }) => glasses)).toEqual([3, 4, 5]);
  expect(seen(({ about }) => (about as WireDocument).word)).toEqual([null, 'tea', 'water', undefined]);
  expect(seen(({ warmth }) => typeof warmth)).toEqual(['number', 'object', 'undefined']);
  expect(seen(({ kept }) => typeof kept)).toEqual(['string', 'undefined']);
  expect(seen(({ cold }) => cold)).toEqual([false, null, true]);
  expect(new Set(documents.map(({ id }) => id)).size).toBe(365);
});

test('the same person and day always have the same document, others have others', () => {
  expect(write()).toEqual(write());
  expect(write(ben)[0]).not.toEqual(write()[0]);
  expect(declared(hydration, recordOf())).toEqual(declared(hydration, recordOf()));
});

test('it is there once the ring has synced after what it tells of, or has uploaded, where it comes in the background', () => {
  const { end } = write()[9]!;
  const over = Date.parse(end as string) / 1000;
  const at = (synced: number, uploaded: number) => recordOf(ada, { wholeTo: year[0]!, synced, uploaded });
  const count = (type: typeof hydration, synced: number, uploaded: number) => declaredOfDay(type, at(synced, uploaded), year[9]!).length;
  expect([count(hydration, over - 3600, over + 3600), count(hydration, over + 3600, 0)]).toEqual([0, 1]);
  const uploaded = { ...hydration, comesInBackground: true as const };
  expect([count(uploaded, over + 3600, over - 3600), count(uploaded, 0, over + 3600)]).toEqual([0, 1]);
});
