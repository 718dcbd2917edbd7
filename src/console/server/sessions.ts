import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, statSync, unlinkSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { consoleSessionsIn } from '../../app/console-sessions.ts';
import { messageOf, RingneckError } from '../../base/errors.ts';
import { ensureFolder, syncFolder, unlessMissing, writeFileAtomically } from '../../base/files.ts';
import { isSameText } from '../../base/is-same-text.ts';
import { type Role, roles } from '../api/route.ts';

/** For whom a session is opened. */
export interface Grant {
  role: Role;
  /** The account of a `person`, else null. */
  person: string | null;
}

/** What a file of `consoleSessionsIn` holds; when the session was used last is when the file was changed. */
const content = z.strictObject({
  role: z.enum(roles),
  person: z.string().nullable(),
  /** When the link was made, in milliseconds. */
  at: z.number(),
});

/** Times are milliseconds. */
export interface OpenSession extends Grant {
  /** Names it to who lists and ends sessions; opens nothing. */
  id: string;
  openedAt: number;
  seenAt: number;
}

export interface ConsoleSession extends OpenSession {
  /** Sent along with what changes something. */
  csrf: string;
}

const CODE_MS = 60_000;
const IDLE_MS = 12 * 3_600_000;
const LONGEST_MS = 7 * 86_400_000;
/** Of codes that nobody has used and of sessions: the oldest gives way. */
const MOST = 1_000;
/** By so much a clock may be put right. */
const PUT_BACK_MS = 120_000;
/** How often it is written down that a session is in use. */
const NOTED_MS = 60_000;

const digestOf = (secret: string) => createHash('sha256').update(secret).digest('base64url');
/** Browsers send a cookie to every port of a machine, be the page there whose it will: in other hands it opens nothing. */
const sessionOf = (cookie: string, user: string) => digestOf(user ? `${cookie} ${user}` : cookie);
const newSecret = () => randomBytes(32).toString('base64url');

/** Of a secret of 32 bytes. */
const DIGEST = /^[\w-]{43}$/;

type Kind = 'link' | 'session';

/**
 * Who may look at the console. A code is exchanged for a session, once, within a minute; a session ends after twelve hours without a
 * request and seven days after its link was made. Each has a file in the data folder that is called by a digest: they outlive the process,
 * follow a move of an account, and end with their file.
 */
export class Sessions {
  readonly #now: () => number;
  readonly #folder: string;
  readonly #onUnreadable: (error: unknown) => void;

  /**
   * @param folder the data folder
   * @param now milliseconds since the epoch
   * @param onUnreadable told of a file of somebody that cannot be read as others come in or are listed
   */
  constructor(folder: string, now: () => number, onUnreadable: (error: unknown) => void = () => undefined) {
    this.#onUnreadable = onUnreadable;
    this.#now = now;
    this.#folder = consoleSessionsIn(folder);
  }

  /**
   * A code of 256 bit, for the address that a browser is sent to.
   * @throws RingneckError where the folder cannot be written
   */
  createCode(grant: Grant): string {
    const code = newSecret();
    this.#change(() => {
      ensureFolder(this.#folder);
      this.#makeRoom('link');
      writeFileAtomically(this.#pathOf(digestOf(code), 'link'), JSON.stringify({ ...grant, at: this.#now() }));
    });
    return code;
  }

  /**
   * Opens a session for a code, which is worth nothing afterwards; undefined where it is none, was used or is too old.
   * @param user of this machine, who alone has it; empty: nobody of it
   */
  enter(code: string, user = ''): { cookie: string; session: ConsoleSession } | undefined {
    const link = digestOf(code);
    if (!this.#find(link, 'link')) return undefined;
    const cookie = newSecret();
    const path = this.#pathOf(sessionOf(cookie, user), 'session');
    const isFirst = this.#change(() => {
      this.#makeRoom('session');
      // One alone can do so, and whom it is for is read afterwards: the account may be getting another name.
      return unlessMissing(() => {
        renameSync(this.#pathOf(link, 'link'), path);
        this.#note(path);
        syncFolder(this.#folder);
        return true;
      });
    });
    const session = isFirst && this.find(cookie, user);
    return session ? { cookie, session } : undefined;
  }

  /** The session of a cookie, which lives on by being asked for. */
  find(cookie: string, user = ''): ConsoleSession | undefined {
    const id = sessionOf(cookie, user);
    const found = this.#find(id, 'session');
    if (!found) return undefined;
    const seenAt = this.#now();
    if (Math.abs(seenAt - found.seenAt) > NOTED_MS) this.#change(() => unlessMissing(() => this.#note(this.#pathOf(id, 'session'))));
    return { ...found, seenAt, csrf: digestOf(`csrf ${cookie}`) };
  }

  /** Whether what changes something was sent by a page of this session. */
  isOwn({ csrf }: ConsoleSession, given: string): boolean {
    return isSameText(given, csrf);
  }

  /** When it ends by itself, unless something is asked before: milliseconds. */
  endOf({ openedAt, seenAt }: OpenSession): number {
    return Math.min(seenAt + IDLE_MS, openedAt + LONGEST_MS);
  }

  /** Whether a session of this id is open. */
  isOpen(id: string): boolean {
    return this.#find(id, 'session') !== undefined;
  }

  /** Whose data an open session shows by now; null where it is of no one person, undefined where it is over. */
  personOf(id: string): string | null | undefined {
    return this.#find(id, 'session')?.person;
  }

  /** Those that are open, the oldest first. */
  list(): OpenSession[] {
    return this.#list('session').flatMap(({ found }) => found ?? []);
  }

  /** Whether there was such a session. */
  end(id: string): boolean {
    if (!this.isOpen(id)) return false;
    const ended = this.#change(() =>
      unlessMissing(() => {
        unlinkSync(this.#pathOf(id, 'session'));
        syncFolder(this.#folder);
        return true;
      }),
    );
    return ended === true;
  }

  #pathOf(digest: string, kind: Kind): string {
    return join(this.#folder, `${digest}.${kind}`);
  }

  /** Undefined where there is none, it is over, or it cannot be made sense of. */
  #find(digest: string, kind: Kind): OpenSession | undefined {
    if (!DIGEST.test(digest)) return undefined;
    const path = this.#pathOf(digest, kind);
    const parsed = unlessMissing(() => ({ text: readText(path), seenAt: Math.round(statSync(path).mtimeMs) }));
    const known = parsed && parse(parsed.text);
    if (!known) return undefined;
    const { at, ...grant } = known;
    const now = this.#now();
    const isOpen = kind === 'link' ? isWithin(now - at, CODE_MS) : isWithin(now - parsed.seenAt, IDLE_MS) && isWithin(now - at, LONGEST_MS);
    return isOpen ? { ...grant, id: digest, openedAt: at, seenAt: parsed.seenAt } : undefined;
  }

  /** The oldest first, and before them what is over. */
  #list(kind: Kind): { path: string; found: OpenSession | undefined }[] {
    const names = unlessMissing(() => readdirSync(this.#folder)) ?? [];
    return names
      .filter(name => name.endsWith(`.${kind}`))
      .flatMap(name => {
        try {
          return { path: join(this.#folder, name), found: this.#find(name.slice(0, -kind.length - 1), kind) };
        } catch (error) {
          this.#onUnreadable(error);
          return [];
        }
      })
      .sort((one, other) => (one.found?.openedAt ?? 0) - (other.found?.openedAt ?? 0));
  }

  /** For one more: what is over goes, and the oldest gives way. */
  #makeRoom(kind: Kind): void {
    const all = this.#list(kind);
    all.forEach(({ path, found }, index) => {
      if (!found || index <= all.length - MOST) rmSync(path, { force: true });
    });
  }

  /** That it is in use. */
  #note(path: string): void {
    const seconds = this.#now() / 1000;
    utimesSync(path, seconds, seconds);
  }

  #change<T>(act: () => T): T {
    try {
      return act();
    } catch (error) {
      const why = messageOf(error instanceof RingneckError ? (error.cause ?? error) : error);
      const fix = 'make it, and the folder that it lies in, writable for the user who runs ringneck';
      throw new RingneckError(`${this.#folder} cannot be written (${why}): ${fix}.`, 1, { cause: error });
    }
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code !== 'ENOENT') {
      const fix = 'make it readable for the user who runs ringneck, or remove it: who it is for comes in again by a fresh link';
      throw new RingneckError(`${path} cannot be read (${messageOf(error)}): ${fix}.`, 1, { cause: error });
    }
    throw error;
  }
}

function parse(text: string): z.infer<typeof content> | undefined {
  try {
    return content.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** A clock that is put back by more makes nothing younger than it is. */
const isWithin = (age: number, most: number) => age >= -PUT_BACK_MS && age < most;
