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

/** A code that nobody has used. */
const link = z.strictObject({
  role: z.enum(roles),
  person: z.string().nullable(),
  /** Its digest. */
  code: z.string(),
  /** Milliseconds since the epoch. */
  at: z.number(),
});
type Link = z.infer<typeof link>;

const content = z.array(z.union([session, link]));
type Content = z.infer<typeof content>;

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
 * request and after seven days. Both lie in a file of the data folder, as digests: they outlive the process, follow a move of an account, and
 * end with the file.
 */
export class Sessions {
  readonly #now: () => number;
  readonly #path: string;
  readonly #file: JsonFile<Content>;
  #notedAt = 0;

  /**
   * @param folder the data folder
   * @param now milliseconds since the epoch
   */
  constructor(folder: string, now: () => number) {
    this.#now = now;
    this.#path = consoleSessionsIn(folder);
    this.#file = openJsonFile(this.#path, content, 'remove it: everybody comes in again by a fresh link');
  }

  /** A code of 256 bit, for the address that a browser is sent to. */
  createCode(grant: Grant): string {
    const code = newSecret();
    const links = this.#listLinks().slice(1 - MOST);
    this.#write(this.list(), [...links, { ...grant, code: digestOf(code), at: this.#now() }]);
    return code;
  }

  /** Opens a session for a code, which is worth nothing afterwards; undefined where it is none, was used or is too old. */
  enter(code: string): { cookie: string; session: ConsoleSession } | undefined {
    const digest = digestOf(code);
    const links = this.#listLinks();
    const found = links.find(one => one.code === digest);
    if (!found) return undefined;
    const now = this.#now();
    const cookie = newSecret();
    const { role, person } = found;
    const opened = { role, person, id: digestOf(cookie), csrf: newSecret(), openedAt: now, seenAt: now };
    const others = links.filter(one => one !== found);
    this.#write([...this.list().slice(1 - MOST), opened], others);
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
    return this.#read()
      .filter(one => 'id' in one)
      .filter(isOpen);
  }

  #listLinks(): Link[] {
    const now = this.#now();
    return this.#read()
      .filter(one => 'code' in one)
      .filter(({ at }) => isWithin(now - at, CODE_MS));
  }

  #read(): Content {
    return this.#file.read() ?? [];
  }

  /** Whether there was such a session. */
  end(id: string): boolean {
    const open = this.list();
    const others = open.filter(one => one.id !== id);
    if (others.length === open.length) return false;
    this.#write(others);
    return true;
  }

  #write(sessions: readonly ConsoleSession[], links: readonly Link[] = this.#listLinks()): void {
    this.#notedAt = this.#now();
    writeFileAtomically(this.#path, JSON.stringify([...sessions, ...links]), 0o600);
  }
}

/** A clock that was set back makes nothing younger than it is. */
const isWithin = (age: number, most: number) => age >= 0 && age < most;
