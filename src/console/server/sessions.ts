import { createHash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { consoleSessionsIn } from '../../app/console-sessions.ts';
import { writeFileAtomically } from '../../base/files.ts';
import { isSameText } from '../../base/is-same-text.ts';
import { type JsonFile, openJsonFile } from '../../base/json-file.ts';
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
 * request and after seven days. Sessions lie in a file of the data folder, as digests of their cookies: they outlive the process, and end
 * with the file.
 */
export class Sessions {
  readonly #now: () => number;
  readonly #path: string;
  readonly #file: JsonFile<ConsoleSession[]>;
  readonly #codes = new Map<string, Grant & { at: number }>();
  #notedAt = 0;

  /**
   * @param folder the data folder
   * @param now milliseconds since the epoch
   */
  constructor(folder: string, now: () => number) {
    this.#now = now;
    this.#path = consoleSessionsIn(folder);
    this.#file = openJsonFile(this.#path, z.array(session), 'remove it: everybody comes in again by a fresh link');
  }

  /** A code of 256 bit, for the address that a browser is sent to. */
  createCode(grant: Grant): string {
    const code = newSecret();
    const [oldest] = this.#codes.keys();
    if (this.#codes.size >= MOST && oldest !== undefined) this.#codes.delete(oldest);
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
    const { role, person } = found;
    const opened = { role, person, id: digestOf(cookie), csrf: newSecret(), openedAt: now, seenAt: now };
    this.#write([...this.list().slice(1 - MOST), opened]);
    return { cookie, session: opened };
  }

  /** The session of a cookie, which lives on by being asked for. */
  find(cookie: string): ConsoleSession | undefined {
    const id = digestOf(cookie);
    const open = this.list();
    const found = open.find(one => one.id === id);
    if (!found) return undefined;
    found.seenAt = this.#now();
    if (Math.abs(found.seenAt - this.#notedAt) > NOTED_MS) this.#write(open);
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

  /** Those that are open, the oldest first. */
  list(): ConsoleSession[] {
    const now = this.#now();
    const isOpen = ({ openedAt, seenAt }: ConsoleSession) => isWithin(now - seenAt, IDLE_MS) && isWithin(now - openedAt, LONGEST_MS);
    return (this.#file.read() ?? []).filter(isOpen);
  }

  /** Whether there was such a session. */
  end(id: string): boolean {
    const open = this.list();
    const others = open.filter(one => one.id !== id);
    if (others.length === open.length) return false;
    this.#write(others);
    return true;
  }

  #write(sessions: readonly ConsoleSession[]): void {
    this.#notedAt = this.#now();
    writeFileAtomically(this.#path, JSON.stringify(sessions), 0o600);
  }
}

/** A clock that was set back makes nothing younger than it is. */
const isWithin = (age: number, most: number) => age >= 0 && age < most;
