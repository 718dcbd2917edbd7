import { join } from 'node:path';
import { setImmediate as yieldTurn } from 'node:timers/promises';
import { dayNumberOf, formatInstant } from '../../schema/instant.ts';
import type { Resource } from '../../schema/resource.ts';
import type { WebhookEvent } from '../../schema/webhook.ts';
import { messageOf } from '../base/errors.ts';
import { Problem } from '../service/problem.ts';
import type { DocumentSource } from '../service/source.ts';
import { Behaviour } from './behaviour.ts';
import type { Announce } from './change.ts';
import { type Clock, createClock } from './clock.ts';
import { findDifferences } from './differences.ts';
import { createOutbox, type Outbox } from './outbox.ts';
import { createReadable, type Readable } from './readable.ts';
import { checkEdit, napUntil, type SleepEdit } from './sleep-edits.ts';
import { type BegunUser, beginState, findState, type TimelineState, writeState } from './state.ts';
import { findReach, type Step, stepUntil, withSync } from './step.ts';
import { realTimers, type Timers } from './timers.ts';
import type { Edit } from './users/edits.ts';
import { createUserModels, type People, showPeople } from './users/people.ts';
import type { Person } from './users/person.ts';
import { peopleSource } from './users/source.ts';
import { createUserRecord, type UserRecord } from './users/user-record.ts';
import type { View } from './users/view.ts';
import { DAY } from './users/zone.ts';

export interface TimelineOptions {
  /** Holds `timeline.json`. */
  folder: string;
  seed: number;
  count: number;
  from: string;
  /** Everything up to this day is there from the beginning; without one, the timeline goes on with the calendar. */
  to?: string;
  /** What was edited before the timeline began. */
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

interface SimulatedUser extends BegunUser {
  /** Up to this moment, in seconds, everything that was due has happened; perhaps to everybody up to a later one. */
  advancedTo: number;
  /** When something happens next, seconds. */
  due: number;
  record: UserRecord;
  /** All that were ever made of this user's documents. */
  edits: readonly Edit[];
}

const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** However fast the clock runs, what is due within this real time happens together, and nine tenths of the time are for others. */
const SHORTEST_WAIT_MS = 50;
const REST_PER_WORK = 9;
/** So many users go on before others have a turn: with the day that they go on at most, some tenths of a second. */
const USERS_AT_ONCE = 20;
const AFTER_FAILURE_MS = 5_000;

/** The timeline of a sandbox's users: opened or begun, and going on by its clock. */
export class Timeline {
  /** What can be read now. */
  readonly source: DocumentSource;
  readonly #options: TimelineOptions;
  readonly #path: string;
  readonly #realNow: () => number;
  readonly #timers: Timers;
  readonly #clock: Clock;
  readonly #users: SimulatedUser[];
  readonly #readable: Readable;
  readonly #outbox: Outbox;
  #state: TimelineState;
  #shown: People;
  #closed = false;
  #timer: unknown;
  #wait = SHORTEST_WAIT_MS;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: TimelineOptions) {
    const { folder, seed, count, to, speed, announce, lagMs = () => 0, realNow = Date.now, timers = realTimers, log } = options;
    this.#options = options;
    this.#path = join(folder, 'timeline.json');
    this.#realNow = realNow;
    this.#timers = timers;
    const users = createUserModels(seed, count).map(model => ({
      model,
      behaviour: new Behaviour(model.person, model.zone, model.bedTimesOf),
    }));
    const found = findState(this.#path, options);
    // Another last day than the one kept begins the timeline anew from there.
    this.#state = found?.whole_to === (to ?? null) ? found : beginState(users, { seed, to, realMs: realNow() }, found);
    const passed = to === undefined && speed > 0 ? Math.max(0, realNow() - this.#state.real_ms) : 0;
    this.#clock = createClock({ at: this.#state.clock_ms + passed, speed, realNow });
    this.#users = resumeUsers(users, this.#state, options);
    this.#shown = this.#show();
    this.#readable = createReadable(this.#shown, lagMs, realNow);
    this.source = sourceOf(() => peopleSource(this.#readable.people()));
    this.#outbox = createOutbox({ events: this.#state.outbox, announce, timers, log, save: () => this.#save({}) });
    this.#save({});
    this.#outbox.tell();
    this.#schedule();
  }

  get clock(): Pick<Clock, 'now' | 'speed'> {
    return this.#clock;
  }

  /** What has reached the service of everybody, in the order of their indexes. */
  people(): { person: Person; view: View }[] {
    return this.#users.map(({ record: { person, view } }) => ({ person, view }));
  }

  /** How many events are not told of yet. */
  untold(): number {
    return this.#outbox.events().length;
  }

  setSpeed(speed: number): Promise<void> {
    return this.#inTurn(async () => {
      await this.#catchUp();
      this.#clock.setSpeed(speed);
      this.#save({});
    });
  }

  /** Moves the clock forward; everything in between happens at once. */
  advance(seconds: number): Promise<void> {
    return this.#inTurn(async () => {
      this.#clock.advance(seconds * 1000);
      await this.#catchUp();
      this.#save({});
    });
  }

  /** The ring of a user syncs now. Gives the events that this raises. */
  sync(userId: string): Promise<WebhookEvent[]> {
    return this.#inTurn(async () => {
      const user = await this.#findCurrent(userId);
      return this.#commit(new Map([[user, { view: withSync(user.record.view, this.#nowSeconds()), edits: [] }]]));
    });
  }

  /** Throws 404 when there is no such sleep, 422 when it would end in the future. */
  edit(edit: SleepEdit): Promise<WebhookEvent[]> {
    return this.#inTurn(async () => {
      const user = await this.#findCurrent(edit.userId);
      checkEdit(user.record, edit, this.#nowSeconds());
      return this.#commit(new Map([[user, { view: user.record.view, edits: [edit] }]]));
    });
  }

  /** A user has napped for so long until now, and the ring syncs. */
  nap(userId: string, minutes: number): Promise<{ day: string; id: string; events: WebhookEvent[] }> {
    return this.#inTurn(async () => {
      const user = await this.#findCurrent(userId);
      const moment = this.#nowSeconds();
      const nap = napUntil(user.record, moment, minutes, this.#state.edits);
      const events = this.#commit(new Map([[user, { view: withSync(user.record.view, moment), edits: [nap] }]]));
      const sleep = user.record.sleepsOf(dayNumberOf(nap.day)).at(-1);
      if (!sleep) throw new Problem(500, 'The nap is not there.');
      return { day: nap.day, id: sleep.id, events };
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timers.clear(this.#timer);
    await this.#turn;
    await this.#outbox.close();
    this.#save({});
  }

  #show(changed: ReadonlyMap<SimulatedUser, UserRecord> = new Map()): People {
    const { seed, from } = this.#options;
    return showPeople(seed, from, new Map(this.#users.map(user => [user.model.person.userId, changed.get(user) ?? user.record])));
  }

  /** What is changed is so once it is written. */
  #save(changes: Partial<TimelineState>): void {
    const now = { clock_ms: this.#clock.now(), real_ms: this.#realNow(), outbox: this.#outbox.events() };
    const next = { ...this.#state, ...now, ...changes };
    writeState(this.#path, next);
    this.#state = next;
  }

  /** One thing at a time; what comes meanwhile waits. */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(run).finally(() => this.#schedule());
    this.#turn = done.catch(() => undefined);
    return done;
  }

  #schedule(): void {
    this.#timers.clear(this.#timer);
    if (this.#closed) return;
    const ms = this.#clock.realMsUntil(this.#users.reduce((first, { due }) => Math.min(first, due), Number.POSITIVE_INFINITY) * 1000);
    if (ms === Number.POSITIVE_INFINITY) return;
    this.#timer = this.#timers.set(() => void this.#goOn(), Math.min(LONGEST_TIMER_MS, Math.max(this.#wait, ms)));
  }

  async #goOn(): Promise<void> {
    await this.#inTurn(() => this.#catchUp()).catch(error => {
      this.#options.log?.warn({ reason: messageOf(error) }, 'the timeline stands still; tried again in a moment');
      this.#wait = AFTER_FAILURE_MS;
      this.#schedule();
    });
  }

  /** Lets happen what is due by now, in steps of a day at most and to some users at a time, so that nothing is ever held up for long. */
  async #catchUp(): Promise<void> {
    const now = this.#nowSeconds();
    while (!this.#closed && this.#state.advanced_to < now) {
      const end = Math.min(now, this.#state.advanced_to + DAY);
      const due = this.#users.filter(user => user.due <= end);
      let workedMs = 0;
      for (let first = 0; first < due.length && !this.#closed; first += USERS_AT_ONCE) {
        const started = this.#realNow();
        const some = due.slice(first, first + USERS_AT_ONCE);
        const step = ({ model, behaviour, record, edits }: SimulatedUser, from: number) =>
          stepUntil(model, behaviour, { view: record.view, edits: [...edits] }, from, end);
        this.#commit(new Map(some.map(user => [user, step(user, this.#reachedBy(user))])), end);
        workedMs += this.#realNow() - started;
        await yieldTurn();
      }
      // Each step, also one that nothing was due in, gives others a turn.
      await yieldTurn();
      this.#wait = Math.max(SHORTEST_WAIT_MS, REST_PER_WORK * workedMs);
      if (!this.#closed) this.#state = { ...this.#state, advanced_to: end };
    }
  }

  /** Makes what came of a time visible and keeps it, together with the events of exactly what it changed. */
  #commit(steps: ReadonlyMap<SimulatedUser, Step>, advancedTo?: number): WebhookEvent[] {
    const state = this.#state;
    const changed = new Map(
      [...steps].map(([user, { view, edits }]) => [user, createUserRecord(user.model, [...user.edits, ...edits], view)]),
    );
    const after = this.#show(changed);
    const events = [...steps].flatMap(([user, change]) => this.#eventsOf(user, after, change));
    const named = events.map((event, i) => ({ eventId: `${state.name}-${state.next_event + i}`, event }));
    this.#save({
      next_event: state.next_event + events.length,
      people: this.#users.map(user => {
        const { synced, uploaded } = (changed.get(user) ?? user.record).view;
        const advanced_to = changed.has(user) ? (advancedTo ?? user.advancedTo) : user.advancedTo;
        return { synced, uploaded, ...(advanced_to > state.advanced_to ? { advanced_to } : {}) };
      }),
      edits: [...state.edits, ...[...steps.values()].flatMap(({ edits }) => edits)],
      outbox: [...this.#outbox.events(), ...named],
    });
    for (const [user, record] of changed) {
      user.record = record;
      user.edits = [...user.edits, ...(steps.get(user)?.edits ?? [])];
      user.advancedTo = advancedTo ?? user.advancedTo;
      user.due = user.behaviour.next(this.#reachedBy(user));
    }
    this.#shown = after;
    this.#readable.show(after);
    this.#outbox.add(named);
    this.#outbox.tell();
    return events;
  }

  #eventsOf({ model: { person, zone }, record }: SimulatedUser, after: People, change: Step): WebhookEvent[] {
    const now = this.#clock.now();
    const event_time = formatInstant({ micros: now * 1000, offset: zone.offsetAt(Math.floor(now / 1000)) });
    return findDifferences(this.#shown, after, person.userId, findReach(record, change, this.#options.resources)).map(
      ({ operation, dataType, id }) => ({ event_type: operation, data_type: dataType, object_id: id, event_time, user_id: person.userId }),
    );
  }

  /** A user, at a moment by which everything due has happened. */
  async #findCurrent(userId: string): Promise<SimulatedUser> {
    const user = this.#users.find(({ model }) => model.person.userId === userId);
    if (!user) throw new Problem(404, 'No such person.');
    await this.#catchUp();
    return user;
  }

  #reachedBy({ advancedTo }: Pick<SimulatedUser, 'advancedTo'>): number {
    return Math.max(this.#state.advanced_to, advancedTo);
  }

  #nowSeconds(): number {
    return Math.floor(this.#clock.now() / 1000);
  }
}

/** The users as far as the kept state goes. */
function resumeUsers(
  users: readonly BegunUser[],
  state: TimelineState,
  { from, to, edits: earlier = [] }: TimelineOptions,
): SimulatedUser[] {
  const wholeTo = to === undefined ? dayNumberOf(from) - 1 : dayNumberOf(to);
  const editsOf = new Map<string, Edit[]>(users.map(({ model }) => [model.person.userId, []]));
  for (const edit of [...earlier, ...state.edits]) editsOf.get(edit.userId)?.push(edit);
  return users.flatMap(({ model, behaviour }, index) => {
    const kept = state.people[index];
    if (!kept) return [];
    const advancedTo = Math.max(state.advanced_to, kept.advanced_to ?? state.advanced_to);
    const edits = editsOf.get(model.person.userId) ?? [];
    const record = createUserRecord(model, edits, { wholeTo, synced: kept.synced, uploaded: kept.uploaded });
    return [{ model, behaviour, advancedTo, due: behaviour.next(advancedTo), record, edits }];
  });
}

/** Asks whatever source is current. */
const sourceOf = (current: () => DocumentSource): DocumentSource => ({
  list: (...query) => current().list(...query),
  find: (...query) => current().find(...query),
  heartRate: (...query) => current().heartRate(...query),
  personalInfo: (...query) => current().personalInfo(...query),
});
