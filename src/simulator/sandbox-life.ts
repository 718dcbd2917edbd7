import { join } from 'node:path';
import { setImmediate as yieldTurn } from 'node:timers/promises';
import { findDayNumber, formatInstant } from '../../schema/instant.ts';
import type { Resource } from '../../schema/resource.ts';
import type { WebhookEvent } from '../../schema/webhook.ts';
import { messageOf } from '../base/errors.ts';
import { Problem } from '../service/problem.ts';
import type { DocumentSource } from '../service/source.ts';
import { beginLife, type Inhabitant } from './begin-life.ts';
import type { Announce } from './change.ts';
import { type Clock, createClock } from './clock.ts';
import { findDifferences } from './differences.ts';
import { createHabits } from './habits.ts';
import { findKeptLife, type KeptLife, keepLife } from './kept-life.ts';
import { findReach, type Lived, liveOn, withSync } from './live-on.ts';
import { createOutbox } from './outbox.ts';
import { createReadable } from './readable.ts';
import { checkEdit, napUntil, type SleepEdit } from './sleep-edits.ts';
import { realTimers, type Timers } from './timers.ts';
import { createDiary, type Diary } from './users/diary.ts';
import type { Edit } from './users/edits.ts';
import { createLives, showPeople } from './users/people.ts';
import type { Person } from './users/person.ts';
import { peopleSource } from './users/source.ts';
import type { View } from './users/view.ts';
import { DAY } from './users/zone.ts';

export interface SandboxLifeOptions {
  /** Holds `life.json`. */
  folder: string;
  seed: number;
  count: number;
  from: string;
  /** Everything up to this day is there from the beginning; without one, life goes on with the calendar. */
  to?: string;
  /** What was edited before life began. */
  edits?: readonly Edit[];
  /** 0 stands still. */
  speed: number;
  resources: readonly Resource[];
  announce: Announce;
  /** How much later than it happened a change can be read, milliseconds of real time. */
  lagMs?: () => number;
  realNow?: () => number;
  timers?: Timers;
  log?: { warn(facts: object, message: string): void };
}

export interface SandboxLife {
  /** What can be read now. */
  source: DocumentSource;
  /** What has reached the service of everybody, in the order of their indexes. */
  people(): { person: Person; view: View }[];
  clock: Pick<Clock, 'now' | 'speed'>;
  /** How many events are not told of yet. */
  untold(): number;
  setSpeed(speed: number): Promise<void>;
  /** Moves the clock forward; life happens in between, at once. */
  advance(seconds: number): Promise<void>;
  /** The ring of somebody syncs now. Gives the events that this raises. */
  sync(userId: string): Promise<WebhookEvent[]>;
  /** Throws 404 when there is no such sleep, 422 when it would end in the future. */
  edit(edit: SleepEdit): Promise<WebhookEvent[]>;
  /** Somebody has napped for so long until now, and the ring syncs. */
  nap(userId: string, minutes: number): Promise<{ day: string; id: string; events: WebhookEvent[] }>;
  close(): Promise<void>;
}

interface Living extends Inhabitant {
  /** Up to this moment, in seconds, everything that was due has happened; perhaps to everybody up to a later one. */
  livedTo: number;
  /** When something happens next, seconds. */
  due: number;
  diary: Diary;
  /** All that were ever made of this person's documents. */
  edits: readonly Edit[];
}

const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** However fast the clock runs, what is due within this real time happens together, and nine tenths of the time are for others. */
const SHORTEST_WAIT_MS = 50;
const REST_PER_WORK = 9;
/** So many people live on before others have a turn: with the day that they live at most, some tenths of a second. */
const PEOPLE_AT_ONCE = 20;
const AFTER_FAILURE_MS = 5_000;

/** Opens the life of a sandbox's people, or begins it, and lets it go on by its clock. */
export function openSandboxLife(options: SandboxLifeOptions): SandboxLife {
  const { folder, seed, from, to, speed, resources, edits: earlier = [], realNow = Date.now, timers = realTimers, log } = options;
  const path = join(folder, 'life.json');
  const inhabitants = createLives(seed, options.count).map(life => ({
    life,
    habits: createHabits(life.person, life.zone, life.bedTimesOf),
  }));
  const found = findKeptLife(path, options);
  // Another last day than the one kept begins life anew from there.
  let kept = found?.whole_to === (to ?? null) ? found : beginLife(inhabitants, to, realNow(), found);
  const passed = to === undefined && speed > 0 ? Math.max(0, realNow() - kept.real_ms) : 0;
  const clock = createClock({ at: kept.clock_ms + passed, speed, realNow });
  const wholeTo = to === undefined ? findDayNumber(from)! - 1 : findDayNumber(to)!;
  const editsByUser = new Map<string, Edit[]>(inhabitants.map(({ life }) => [life.person.userId, []]));
  for (const edit of [...earlier, ...kept.edits]) editsByUser.get(edit.userId)?.push(edit);
  const living: Living[] = inhabitants.map(({ life, habits }, index) => {
    const { synced, uploaded, lived_to = kept.lived_to } = kept.people[index]!;
    const livedTo = Math.max(kept.lived_to, lived_to);
    const edits = editsByUser.get(life.person.userId) ?? [];
    const diary = createDiary(life, edits, { wholeTo, synced, uploaded });
    return { life, habits, livedTo, due: habits.next(livedTo), diary, edits };
  });
  let shown = show();
  const readable = createReadable(shown, options.lagMs ?? (() => 0), realNow);
  const outbox = createOutbox({ events: kept.outbox, announce: options.announce, timers, log, save: () => keep({}) });

  let closed = false;
  let timer: unknown;
  let wait = SHORTEST_WAIT_MS;
  let turn: Promise<unknown> = Promise.resolve();
  keep({});
  outbox.tell();
  schedule();

  function show(changed: ReadonlyMap<Living, Diary> = new Map()) {
    return showPeople(seed, from, new Map(living.map(each => [each.life.person.userId, changed.get(each) ?? each.diary])));
  }

  /** What is changed is so once it is written. */
  function keep(changes: Partial<KeptLife>): void {
    const next = { ...kept, clock_ms: clock.now(), real_ms: realNow(), outbox: outbox.events(), ...changes };
    keepLife(path, next);
    kept = next;
  }

  /** One thing at a time; what comes meanwhile waits. */
  function inTurn<T>(run: () => Promise<T>): Promise<T> {
    const done = turn.then(run).finally(schedule);
    turn = done.catch(() => undefined);
    return done;
  }

  function schedule(): void {
    timers.clear(timer);
    if (closed) return;
    const ms = clock.realMsUntil(living.reduce((first, { due }) => Math.min(first, due), Number.POSITIVE_INFINITY) * 1000);
    if (ms !== Number.POSITIVE_INFINITY) timer = timers.set(() => void goOn(), Math.min(LONGEST_TIMER_MS, Math.max(wait, ms)));
  }

  async function goOn(): Promise<void> {
    await inTurn(catchUp).catch(error => {
      log?.warn({ reason: messageOf(error) }, 'life stands still; tried again in a moment');
      wait = AFTER_FAILURE_MS;
      schedule();
    });
  }

  /** Lets happen what is due by now, in steps of a day at most and to some people at a time, so that nothing is ever held up for long. */
  async function catchUp(): Promise<void> {
    const now = nowSeconds();
    while (!closed && kept.lived_to < now) {
      const end = Math.min(now, kept.lived_to + DAY);
      const due = living.filter(each => each.due <= end);
      let workedMs = 0;
      for (let first = 0; first < due.length && !closed; first += PEOPLE_AT_ONCE) {
        const started = realNow();
        const some = due.slice(first, first + PEOPLE_AT_ONCE);
        commit(new Map(some.map(each => [each, liveOn(each.life, each.habits, pastOf(each), reachedBy(each), end)])), end);
        workedMs += realNow() - started;
        await yieldTurn();
      }
      // Each step, also one that nothing was due in, gives others a turn.
      await yieldTurn();
      wait = Math.max(SHORTEST_WAIT_MS, REST_PER_WORK * workedMs);
      if (!closed) kept = { ...kept, lived_to: end };
    }
  }

  /** Makes what came of a time visible and keeps it, together with the events of exactly what it changed. */
  function commit(lived: ReadonlyMap<Living, Lived>, livedTo?: number): WebhookEvent[] {
    const made = [...lived.values()].flatMap(each => each.edits);
    const changed = new Map([...lived].map(([each, { view, edits }]) => [each, createDiary(each.life, [...each.edits, ...edits], view)]));
    const after = show(changed);
    const events = [...lived].flatMap(([{ life, diary }, change]) => {
      const differences = findDifferences(shown, after, life.person.userId, findReach(diary, change, resources));
      return differences.map(each => eventOf(each, life));
    });
    const named = events.map((event, i) => ({ eventId: `${kept.name}-${kept.next_event + i}`, event }));
    keep({
      next_event: kept.next_event + events.length,
      people: living.map(each => {
        const { synced, uploaded } = (changed.get(each) ?? each.diary).view;
        const lived_to = changed.has(each) ? (livedTo ?? each.livedTo) : each.livedTo;
        return { synced, uploaded, ...(lived_to > kept.lived_to ? { lived_to } : {}) };
      }),
      edits: [...kept.edits, ...made],
      outbox: [...outbox.events(), ...named],
    });
    for (const [each, { edits }] of lived) {
      each.diary = changed.get(each)!;
      each.edits = [...each.edits, ...edits];
      each.livedTo = livedTo ?? each.livedTo;
      each.due = each.habits.next(reachedBy(each));
    }
    shown = after;
    readable.show(after);
    outbox.add(named);
    outbox.tell();
    return events;
  }

  function eventOf(
    { operation, dataType, id }: ReturnType<typeof findDifferences>[number],
    { person, zone }: Living['life'],
  ): WebhookEvent {
    const now = clock.now();
    const event_time = formatInstant({ micros: now * 1000, offset: zone.offsetAt(Math.floor(now / 1000)) });
    return { event_type: operation, data_type: dataType, object_id: id, event_time, user_id: person.userId };
  }

  /** Somebody, at a moment by which everything due has happened. */
  async function meet(userId: string): Promise<Living> {
    const somebody = living.find(({ life }) => life.person.userId === userId);
    if (!somebody) throw new Problem(404, 'No such person.');
    await catchUp();
    return somebody;
  }

  const reachedBy = ({ livedTo }: Living): number => Math.max(kept.lived_to, livedTo);
  const pastOf = ({ diary: { view }, edits }: Living): Lived => ({ view, edits: [...edits] });

  function nowSeconds(): number {
    return Math.floor(clock.now() / 1000);
  }

  const current = () => peopleSource(readable.people());
  return {
    source: {
      list: (...query) => current().list(...query),
      find: (...query) => current().find(...query),
      heartRate: (...query) => current().heartRate(...query),
      personalInfo: (...query) => current().personalInfo(...query),
    },
    people: () => living.map(({ diary: { person, view } }) => ({ person, view })),
    clock,
    untold: () => outbox.events().length,
    setSpeed: next =>
      inTurn(async () => {
        await catchUp();
        clock.setSpeed(next);
        keep({});
      }),
    advance: seconds =>
      inTurn(async () => {
        clock.advance(seconds * 1000);
        await catchUp();
        keep({});
      }),
    sync: userId =>
      inTurn(async () => {
        const somebody = await meet(userId);
        return commit(new Map([[somebody, { view: withSync(somebody.diary.view, nowSeconds()), edits: [] }]]));
      }),
    edit: edit =>
      inTurn(async () => {
        const somebody = await meet(edit.userId);
        checkEdit(somebody.diary, edit, nowSeconds());
        return commit(new Map([[somebody, { view: somebody.diary.view, edits: [edit] }]]));
      }),
    nap: (userId, minutes) =>
      inTurn(async () => {
        const somebody = await meet(userId);
        const moment = nowSeconds();
        const nap = napUntil(somebody.diary, moment, minutes, kept.edits);
        const events = commit(new Map([[somebody, { view: withSync(somebody.diary.view, moment), edits: [nap] }]]));
        const { id } = somebody.diary.sleepsOf(findDayNumber(nap.day)!).at(-1)!;
        return { day: nap.day, id, events };
      }),
    async close() {
      closed = true;
      timers.clear(timer);
      await turn;
      await outbox.close();
      keep({});
    },
  };
}
