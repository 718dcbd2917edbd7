import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { writeFileAtomically } from '../../base/files.ts';
import { isSameText } from '../../base/is-same-text.ts';
import { openJsonFile } from '../../base/json-file.ts';
import { type Role, roles } from '../api/route.ts';

/** For whom a session is opened. */
export interface Grant {
  role: Role;
  /** The account of a `person`, else null. */
  person: string | null;
}

const session = z.strictObject({
  role: z.enum(roles),
  person: z.string().nullable(),
  /** Names it to who lists and ends sessions; opens nothing. */
  id: z.string(),
  /** Sent along with what changes something. */
  csrf: z.string(),
  /** Milliseconds since the epoch. */
  openedAt: z.number(),
  seenAt: z.number(),
});
export type ConsoleSession = z.infer<typeof session>;

const CODE_MS = 60_000;
const IDLE_MS = 12 * 3_600_000;
const LONGEST_MS = 7 * 86_400_000;
/** Of codes that nobody has used and of sessions: the oldest gives way. */
const MOST = 1_000;
/** How often it is written down that a session is in use. */
const NOTED_MS = 60_000;

const digestOf = (secret: string) => createHash('sha256').update(secret).digest('base64url');
const newSecret = () => randomBytes(32).toString('base64url');

/**
 * Who may look at the console. A code is exchanged for a session, once, within a minute; a session ends after twelve hours without a
 * request and after seven days. Sessions outlive the process, in a file that has digests of their cookies alone.
 */
export class Sessions {
  readonly #now: () => number;
  readonly #path: string;
  readonly #codes = new Map<string, Grant & { at: number }>();
  readonly #sessions: Map<string, ConsoleSession>;
  #notedAt = 0;

  /**
   * @param folder the data folder
   * @param now milliseconds since the epoch
   */
  constructor(folder: string, now: () => number) {
    this.#now = now;
    this.#path = join(folder, 'console-sessions.json');
    const stored = openJsonFile(this.#path, z.array(session)).read() ?? [];
    this.#sessions = new Map(stored.map(one => [one.id, one]));
  }

  /** A code of 256 bit, for the address that a browser is sent to. */
  createCode(grant: Grant): string {
    const code = newSecret();
    makeRoom(this.#codes);
    this.#codes.set(digestOf(code), { ...grant, at: this.#now() });
    return code;
  }

  /** Opens a session for a code, which is worth nothing afterwards; undefined where it is none, was used or is too old. */
  enter(code: string): { cookie: string; session: ConsoleSession } | undefined {
    const digest = digestOf(code);
    const found = this.#codes.get(digest);
    this.#codes.delete(digest);
    const now = this.#now();
    if (!found || !isWithin(now - found.at, CODE_MS)) return undefined;
    const cookie = newSecret();
    const id = digestOf(cookie);
    const { role, person } = found;
    const opened = { role, person, id, csrf: newSecret(), openedAt: now, seenAt: now };
    makeRoom(this.#sessions);
    this.#sessions.set(id, opened);
    this.#write();
    return { cookie, session: opened };
  }

  /** The session of a cookie, which lives on by being asked for. */
  find(cookie: string): ConsoleSession | undefined {
    const found = this.#sessions.get(digestOf(cookie));
    if (!found || !this.#isOpen(found)) return undefined;
    found.seenAt = this.#now();
    if (Math.abs(found.seenAt - this.#notedAt) > NOTED_MS) this.#write();
    return found;
  }

  /** Whether what changes something was sent by a page of this session. */
  isOwn({ csrf }: ConsoleSession, given: string): boolean {
    return isSameText(given, csrf);
  }

  /** When it ends by itself, unless something is asked before: milliseconds. */
  endOf({ openedAt, seenAt }: ConsoleSession): number {
    return Math.min(seenAt + IDLE_MS, openedAt + LONGEST_MS);
  }

  list(): ConsoleSession[] {
    return [...this.#sessions.values()].filter(one => this.#isOpen(one));
  }

  /** Whether there was such a session. */
  end(id: string): boolean {
    const isEnded = this.#sessions.delete(id);
    if (isEnded) this.#write();
    return isEnded;
  }

  /** Nobody reads on who has lost the right to: the sessions of a person who is removed. */
  endOfPerson(person: string): void {
    for (const one of this.#sessions.values()) if (one.person === person) this.#sessions.delete(one.id);
    this.#write();
  }

  #isOpen({ openedAt, seenAt }: ConsoleSession): boolean {
    const now = this.#now();
    return isWithin(now - seenAt, IDLE_MS) && isWithin(now - openedAt, LONGEST_MS);
  }

  #write(): void {
    for (const one of this.#sessions.values()) if (!this.#isOpen(one)) this.#sessions.delete(one.id);
    this.#notedAt = this.#now();
    writeFileAtomically(this.#path, JSON.stringify([...this.#sessions.values()]), 0o600);
  }
}

/** A clock that was set back makes nothing younger than it is. */
const isWithin = (age: number, most: number) => age >= 0 && age < most;

function makeRoom(map: Map<string, unknown>): void {
  const [oldest] = map.keys();
  if (map.size >= MOST && oldest !== undefined) map.delete(oldest);
}
