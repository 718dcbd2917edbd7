import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf, RingneckError, UsageError } from '../base/errors.ts';
import { writeFileAtomically } from '../base/files.ts';
import { lockFolder } from './lock.ts';
import {
  type Authenticate,
  createAuthenticate,
  createToken,
  hashToken,
  TOKEN_STATES,
  type TokenChange,
  type TokenHolder,
  type TokenState,
} from './tokens.ts';

export interface ServiceStateOptions {
  /** Whom the sandbox holds. Tokens belong to a place in this list. */
  people: readonly { name: string; userId: string }[];
  seed: number;
  /** First and last day of the people's data; no last day: it grows with the calendar. */
  from: string;
  to?: string;
  /** Gives everybody a new token and revokes the old ones. */
  newTokens?: boolean;
}

/** What a sandbox service remembers between its runs. */
export interface ServiceState {
  /** `token` is there only when it was made just now: at the first start, or with `newTokens`. */
  people: readonly { name: string; user_id: string; token: string | null }[];
  /** Signs next_token. */
  tokenKey: Uint8Array;
  authenticate: Authenticate;
  /** Whether somebody's membership has lapsed. */
  isLapsed(userId: string): boolean;
  /** Sets the state of somebody's token, and tells what it was and is: one that is revoked stays so. */
  setTokenState(userId: string, state: TokenState): TokenChange;
  /** The log of edits of the people's data, oldest first. */
  readonly edits: readonly unknown[];
  addEdit(edit: unknown): void;
  /** Gives the folder back. */
  close(): void;
}

const stateFile = z.object({
  format: z.literal(1),
  people: z.int(),
  seed: z.number(),
  from: z.string(),
  to: z.string().optional(),
  token_key: z.base64(),
  tokens: z.array(z.object({ person: z.int(), hash: z.string(), state: z.enum(TOKEN_STATES) })),
  edits: z.array(z.unknown()),
});
type StateFile = z.infer<typeof stateFile>;

/**
 * Opens, or at the first start makes, the state of a sandbox service in `folder`, and takes the folder for this process. Throws
 * TryLaterError when another process has it, UsageError when it was made for other people, seed or first day.
 */
export function openServiceState(folder: string, options: ServiceStateOptions): ServiceState {
  const unlock = lockFolder(folder);
  try {
    return readServiceState(join(folder, 'state.json'), options, unlock);
  } catch (error) {
    unlock();
    throw error;
  }
}

function readServiceState(path: string, options: ServiceStateOptions, unlock: () => void): ServiceState {
  const { people } = options;
  const stored = findStateFile(path);
  if (stored) checkSame(path, stored, options);
  const state = stored ?? createStateFile(options);
  // The days may go on: what was served stays as it was.
  state.to = options.to;
  const clear = people.map(() => (stored && !options.newTokens ? null : createToken()));
  const fresh = clear.flatMap((token, person) => (token === null ? [] : [{ person, hash: hashToken(token), state: 'active' as const }]));
  if (fresh.length > 0) {
    for (const token of state.tokens) token.state = 'revoked';
    state.tokens.push(...fresh);
  }

  const holders = new Map<string, TokenHolder>();
  function save(): void {
    writeFileAtomically(path, `${JSON.stringify(state, null, 2)}\n`);
    holders.clear();
    for (const { person, hash, state: worth } of state.tokens) {
      const userId = people[person]?.userId;
      if (userId !== undefined) holders.set(hash, { userId, state: worth });
    }
  }
  save();
  /** The last of those that were made: the others are revoked. */
  function findToken(userId: string) {
    const person = people.findIndex(someone => someone.userId === userId);
    return state.tokens.findLast(one => one.person === person);
  }

  return {
    people: people.map(({ name, userId }, person) => ({ name, user_id: userId, token: clear[person] ?? null })),
    tokenKey: Buffer.from(state.token_key, 'base64'),
    authenticate: createAuthenticate(holders),
    isLapsed: userId => findToken(userId)?.state === 'lapsed',
    setTokenState(userId, worth) {
      const token = findToken(userId);
      if (!token) throw new RangeError(`${userId} has no token`);
      const before = token.state;
      if (before !== 'revoked') token.state = worth;
      save();
      return { before, after: token.state };
    },
    get edits() {
      return state.edits;
    },
    addEdit(edit) {
      state.edits.push(edit);
      save();
    },
    close: unlock,
  };
}

function createStateFile({ people, seed, from, to }: ServiceStateOptions): StateFile {
  const token_key = randomBytes(32).toString('base64');
  return { format: 1, people: people.length, seed, from, to, token_key, tokens: [], edits: [] };
}

function findStateFile(path: string): StateFile | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return stateFile.parse(JSON.parse(text));
  } catch (error) {
    throw new RingneckError(`${path} is no state of this program; restore it or remove it to start afresh (${messageOf(error)})`);
  }
}

function checkSame(path: string, stored: StateFile, { people, seed, from }: ServiceStateOptions): void {
  const asked = { people: people.length, seed, from };
  for (const name of ['people', 'seed', 'from'] as const) {
    if (stored[name] !== asked[name])
      throw new UsageError(
        `--${name} is ${asked[name]}, but ${path} was made with ${stored[name]}; use that value, or another folder: RINGNECK_DATA=./data-2 ringneck service …`,
      );
  }
}

/** What a state in `folder` was made for; undefined before the first start. */
export function findServiceOptions(folder: string): { people: number; seed: number; from: string; to?: string } | undefined {
  const stored = findStateFile(join(folder, 'state.json'));
  if (!stored) return undefined;
  const { people, seed, from, to } = stored;
  return { people, seed, from, ...(to === undefined ? {} : { to }) };
}
