import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { messageOf } from '../../base/errors.ts';
import { readsMuch } from '../page/parts/reads-much.ts';
import type { ConsoleParts } from './handlers.ts';

/** What somebody who looks on is told: that something else is to be asked for, never what it is. */
export type LiveKind = 'snapshot' | 'run' | 'event' | 'account';

interface Message {
  id: string;
  kind: LiveKind;
  data: string;
}

interface Follower {
  raw: ServerResponse;
  /** The id of the session that follows. */
  session: string;
  /** A person is told of their file alone. */
  isPerson: boolean;
  isOpen(): boolean;
}

const TICK_MS = 1_000;
const PING_TICKS = 15;
const ACCOUNT_TICKS = 5;
const KEPT = 200;
const MOST_FOLLOWERS = 100;
/** Of one session, whose page follows once in each browser. */
const MOST_OF_ONE = 10;
/** Who does not read for so long is let go, and comes again. */
const MOST_BUFFERED = 262_144;

/** Server-sent events, of one look each second at what may have changed, as long as somebody follows. */
export class Live {
  readonly #parts: Pick<ConsoleParts, 'commands' | 'log'>;
  readonly #stampOf: () => string | undefined;
  readonly #followers = new Set<Follower>();
  readonly #kept: Message[] = [];
  /** The ids of another process mean nothing here. */
  readonly #run = randomBytes(6).toString('hex');
  readonly #known = new Map<LiveKind, string>();
  #number = 0;
  #ticks = 0;
  #events: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

  /** @param stampOf changes with each publication of the snapshot */
  constructor(parts: Pick<ConsoleParts, 'commands' | 'log'>, stampOf: () => string | undefined) {
    this.#parts = parts;
    this.#stampOf = stampOf;
  }

  /** Whether nobody more can follow, or nobody more by this session. */
  isFullFor(session: string): boolean {
    const own = [...this.#followers].filter(follower => follower.session === session).length;
    return this.#followers.size >= MOST_FOLLOWERS || own >= MOST_OF_ONE;
  }

  /** @param lastId the last message that the browser has had, if it was here before */
  follow(follower: Follower, lastId: string | undefined): void {
    const { raw } = follower;
    raw.write('retry: 2000\n\n');
    const at = this.#kept.findIndex(({ id }) => id === lastId);
    if (at >= 0) for (const message of this.#kept.slice(at + 1)) this.#send(follower, message);
    // What was missed meanwhile is not known any more.
    else if (lastId !== undefined) this.#send(follower, this.#newMessage('snapshot', '{}'));
    this.#followers.add(follower);
    raw.once('close', () => this.#leave(follower));
    // Whoever is gone is told so by that alone.
    raw.on('error', () => undefined);
    this.#timer ??= this.#start();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    for (const { raw } of this.#followers) raw.end();
    this.#followers.clear();
  }

  #start(): NodeJS.Timeout {
    this.#known.clear();
    this.#events = undefined;
    void this.tick();
    return setInterval(() => void this.tick(), TICK_MS).unref();
  }

  /** Also of whose session it cannot be told: they come again, and are told what is wrong. */
  #isOver({ isOpen }: Follower): boolean {
    try {
      return !isOpen();
    } catch (error) {
      this.#parts.log.debug({ reason: messageOf(error) }, 'a session of the console cannot be read');
      return true;
    }
  }

  /** At once: what is written to an answer that has ended would end the process. */
  #letGo(follower: Follower): void {
    this.#leave(follower);
    follower.raw.end();
  }

  #leave(follower: Follower): void {
    this.#followers.delete(follower);
    if (this.#followers.size) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Looks once. */
  async tick(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    for (const follower of this.#followers) if (this.#isOver(follower)) this.#letGo(follower);
    try {
      this.#tellIfOther('snapshot', this.#stampOf() ?? '');
      await this.#lookAtOwner();
    } catch (error) {
      // While the folder is closed for a moment its owner answers nothing.
      this.#parts.log.debug({ reason: messageOf(error) }, 'the console could not look at its owner');
    } finally {
      this.#isLooking = false;
    }
    if (++this.#ticks % PING_TICKS === 0) this.#ping();
  }

  async #lookAtOwner(): Promise<void> {
    const { commands } = this.#parts;
    if (!commands) return;
    const runs = await commands.activeRuns();
    this.#tellIfOther('run', JSON.stringify(runs));
    const { count, events } = await commands.listRecentEvents(this.#events === undefined ? {} : { after: this.#events });
    this.#events = count;
    if (events.length) this.#tell('event', JSON.stringify({ count: events.length }));
    if (this.#ticks % ACCOUNT_TICKS !== 0) return;
    // Whether much is read belongs to how fresh it is what all look at.
    const isReading = runs.some(readsMuch);
    const hindrances = await commands.readHindrances();
    // Not each megabyte that comes and goes.
    const isFull = Boolean(hindrances.disk_full);
    this.#tellIfOther('account', JSON.stringify([await commands.listAccounts(), { ...hindrances, disk_full: isFull }, isReading]));
  }

  #tellIfOther(kind: LiveKind, now: string): void {
    const before = this.#known.get(kind);
    this.#known.set(kind, now);
    if (before !== undefined && before !== now) this.#tell(kind, '{}');
  }

  #tell(kind: LiveKind, data: string): void {
    const message = this.#newMessage(kind, data);
    if (this.#kept.push(message) > KEPT) this.#kept.shift();
    for (const follower of this.#followers) this.#send(follower, message);
  }

  #newMessage(kind: LiveKind, data: string): Message {
    return { id: `${this.#run}-${++this.#number}`, kind, data };
  }

  #ping(): void {
    for (const follower of this.#followers) this.#write(follower, 'event: ping\ndata: {}\n\n');
  }

  #send(follower: Follower, { id, kind, data }: Message): void {
    if (follower.isPerson && kind !== 'snapshot') return;
    this.#write(follower, `id: ${id}\nevent: ${kind}\ndata: ${data}\n\n`);
  }

  #write({ raw }: Follower, text: string): void {
    if (raw.writableLength > MOST_BUFFERED) raw.destroy();
    else raw.write(text);
  }
}
