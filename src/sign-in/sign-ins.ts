import { createHash } from 'node:crypto';
import { isScope } from '../../schema/scopes.ts';
import { messageOf, RingneckError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Secrets } from '../base/secrets/secrets.ts';
import { earlierWith, isReplaced, proven, type SignIn } from '../base/secrets/sign-in.ts';
import { loginCommand } from '../base/sign-in-again.ts';
import { SignInError } from './error.ts';
import type { OAuthClient, TokenAnswer } from './oauth.ts';

export interface SignInsOptions {
  secrets: Pick<Secrets, 'findSignIn' | 'findHolder' | 'findOwner' | 'putSignIn'>;
  /** @throws UsageError where the client is not set */
  openOAuth(): Promise<Renewing>;
  /**
   * Asks whose the tokens of a sign-in are that was renewed. Those of another person are nobody's afterwards: their account waits.
   * @throws where there is no clear answer
   */
  askWhose(name: string, signIn: SignIn): Promise<Whose>;
  /**
   * Ends what a renewal has brought for an account that has been removed, or given something else, meanwhile.
   * @throws where that cannot be written
   */
  takeBack(name: string, signIn: SignIn): Promise<void>;
  /** The other accounts: what they are read with is not kept for this one. */
  listOthers(name: string): Promise<readonly string[]>;
  /** Has who ends the process wait for a renewal. */
  wait(renewal: Promise<void>): Promise<void>;
  /** Aborted once no renewal is to begin any more: who ends waits for those that have, and not for one after the other. */
  ending: AbortSignal;
  /** Asked before each refresh token is used, which works once: throws where another machine may have used it. */
  ensureOurs(): Promise<void>;
  /** Milliseconds since the epoch. */
  now: () => number;
  log: Log;
  /** The accounts whose sign-ins are to be kept alive. */
  listKept(): Promise<readonly string[]>;
  /** A sign-in is over: its person must sign in again. */
  onEnded(name: string, signIn: SignIn): Promise<void>;
  /** A token ends soon, or has ended, and could not be renewed once more. */
  onEnding(name: string, reason: string): void;
  /** Kept by who opens another one of these later. */
  unwritten?: Unwritten;
}

/** Renewed sign-ins that the disk did not take, by account: the service knows no others any more. */
export type Unwritten = Map<string, SignIn>;

type Renewing = Pick<OAuthClient, 'refresh' | 'tokenUrl'>;

/** Whose renewed tokens are; `untold`: nobody can say, as before the renewal. */
export type Whose = 'same' | 'another' | 'untold';

/** How often it is looked whether a token is to be renewed: the shortest-lived ones that are sensible live for some minutes. */
const LOOK_MS = 15_000;
/** A machine that has slept finds all accounts due at once. */
const SIDE_BY_SIDE = 4;
const FIRST_BACKOFF_MS = 5_000;
const LONGEST_BACKOFF_MS = 15 * 60_000;
/** A token that was renewed and is refused at once is not renewed again: the refusal has another cause. */
const SHORTEST_LIFE_MS = 60_000;
/**
 * So long nothing is read with tokens of which the service does not say whose they are, and until it was asked so often, for a clock may jump;
 * an outage of that one route shall not end all reading.
 */
const LONGEST_DOUBT_MS = 86_400_000;
const LEAST_DOUBTS = 10;

/** How long nobody is asked after a failure. */
interface Trouble {
  /** What it is of: a sign-in's id, or an access token. */
  of: string;
  failures: number;
  /** By the clock that nobody sets. */
  until: number;
  error: SignInError;
}

function troubleAfter(before: Trouble | undefined, of: string, error: SignInError, random: number): Trouble {
  const failures = (before?.failures ?? 0) + 1;
  const backoffMs = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1)) * (0.5 + random / 2);
  return { of, failures, until: performance.now() + backoffMs, error };
}

/**
 * Keeps the sign-ins of a data folder alive: renews each token at half of its life, and when it has ended or the service says so; of one
 * account once at a time. Only the process that owns the folder has one. A new pair of tokens is on the disk before it is used, and the
 * refresh token before stays beside it until the new access token was seen to work. Nothing is read with it before the service has said
 * whose it is.
 */
export class SignIns {
  readonly #options: SignInsOptions;
  readonly #refreshing = new Map<string, Promise<void>>();
  readonly #trouble = new Map<string, Trouble>();
  readonly #proving = new Map<string, Promise<void>>();
  readonly #doubts = new Map<string, Trouble>();
  /** When each sign-in was renewed by this process, by its id and the clock that nobody sets. */
  readonly #renewedAt = new Map<string, number>();
  /** The access token of each sign-in whose last renewal brought the one that there was, by its id. */
  readonly #unchanged = new Map<string, string>();
  /** Sign-ins that the service has ended, by id. */
  readonly #ended = new Set<string>();
  readonly #unwritten: Unwritten;
  #timer: NodeJS.Timeout | undefined;
  #firstLook = Promise.resolve();
  #closed = false;

  constructor(options: SignInsOptions) {
    this.#options = options;
    this.#unwritten = options.unwritten ?? new Map();
  }

  /** Begins to renew tokens before they end. */
  start(): void {
    const look = () =>
      this.renewDue().catch(error => {
        // The ledger is closed then.
        if (!this.#closed) this.#options.log.warn({ reason: messageOf(error) }, 'sign-ins were not looked at');
      });
    this.#timer ??= setInterval(() => void look(), LOOK_MS).unref();
    this.#firstLook = look();
  }

  /** Resolves when those that were due at the beginning are renewed, or could not be, and never rejects. What keeps the thread meanwhile keeps their tokens off the disk. */
  firstLook(): Promise<void> {
    return this.#firstLook;
  }

  /** Waits for what was asked for: an answer that nobody takes would lose the account. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await Promise.allSettled(this.#refreshing.values());
    await this.#keepUnwritten();
  }

  /** Renews each token that has lived for half of its life. What fails is tried again later, and told in the log. */
  async renewDue(): Promise<void> {
    if (this.#options.ending.aborted) return;
    await this.#keepUnwritten();
    const due = (await this.#options.listKept()).filter(name => this.#isDue(name)).values();
    const renewSome = async () => {
      for (const name of due) {
        await this.#refresh(name)
          .then(() => this.#findProven(name))
          .catch(() => undefined);
      }
    };
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, renewSome));
  }

  /** One that cannot be read keeps nobody else's from being renewed; who reads with it is told. */
  #isDue(name: string): boolean {
    const { secrets, now } = this.#options;
    try {
      const signIn = secrets.findSignIn(name);
      return signIn !== undefined && this.#canRenew(signIn) && now() >= dueAt(signIn);
    } catch (error) {
      if (error instanceof RingneckError) return false;
      throw error;
    }
  }

  /**
   * The token to ask with, in place of one that an account was found to have: the newest of the same sign-in, renewed where it has ended.
   * @throws SignInError where it has ended and the service gives no other for now, or where it may be of another person
   */
  async current(token: string): Promise<string> {
    const { secrets, now } = this.#options;
    const held = secrets.findHolder(token);
    if (!held) return token;
    const { expiresAt } = held.signIn;
    if (expiresAt !== null && now() >= expiresAt && this.#canRenew(held.signIn)) await this.#refresh(held.name);
    const found = await this.#findProven(held.name);
    return secrets.findHolder(token) && found !== undefined ? found : token;
  }

  /** The access token of an account, once it may be read with. Throws SignInError. */
  async #findProven(name: string): Promise<string | undefined> {
    const { secrets, now } = this.#options;
    for (;;) {
      const signIn = secrets.findSignIn(name);
      if (signIn?.unprovenSince === undefined) return signIn?.accessToken;
      const running = this.#proving.get(name) ?? this.#prove(name, signIn).finally(() => this.#proving.delete(name));
      this.#proving.set(name, running);
      try {
        await running;
      } catch (error) {
        // A clock that was put back makes it no longer.
        const isLong = Math.abs(now() - signIn.unprovenSince) >= LONGEST_DOUBT_MS;
        const isOften = (secrets.findSignIn(name)?.unprovenTries ?? 0) >= LEAST_DOUBTS;
        if (!isLong || !isOften || this.#doubts.get(name)?.error instanceof AnotherPersonError) throw error;
      }
      // One that came meanwhile is a token of its own.
      if (secrets.findSignIn(name)?.accessToken === signIn.accessToken) return signIn.accessToken;
    }
  }

  /** Has it said whose a pair is. Throws SignInError where that is not known, or where it is another person's. */
  async #prove(name: string, signIn: SignIn): Promise<void> {
    const { secrets, log, askWhose } = this.#options;
    const { accessToken } = signIn;
    const known = this.#doubts.get(name);
    const doubt = known?.of === accessToken ? known : undefined;
    if (doubt && performance.now() < doubt.until) throw doubt.error;
    try {
      const whose = await askWhose(name, signIn);
      if (whose === 'another') throw new AnotherPersonError();
      this.#doubts.delete(name);
      const current = secrets.findSignIn(name);
      if (current?.accessToken !== accessToken) return;
      secrets.putSignIn(name, proven(current));
    } catch (error) {
      const failure =
        error instanceof SignInError
          ? error
          : new SignInError('unavailable', `the service does not say whose the renewed token is: ${messageOf(error)}`, { cause: error });
      const next = troubleAfter(doubt, accessToken, failure, jitter(signIn));
      this.#doubts.set(name, next);
      this.#noteDoubt(name, accessToken);
      const facts = { account: name, reason: failure.message, failures: next.failures };
      log.warn(facts, 'nothing is read with the renewed token of the account: the service is asked again whose it is');
      throw failure;
    }
  }

  #noteDoubt(name: string, accessToken: string): void {
    const { secrets, log } = this.#options;
    const current = secrets.findSignIn(name);
    if (current?.accessToken !== accessToken) return;
    try {
      secrets.putSignIn(name, { ...current, unprovenTries: (current.unprovenTries ?? 0) + 1 });
    } catch (error) {
      log.warn({ account: name, reason: messageOf(error) }, 'that nobody says whose the tokens are could not be written');
    }
  }

  /** Why the sign-in of an account could not be renewed, or its new token not be used, when that was tried last. Undefined: it could. */
  findTrouble(name: string): string | undefined {
    const signIn = this.#options.secrets.findSignIn(name);
    const found = [this.#trouble.get(name), this.#doubts.get(name)].find(
      trouble => trouble && (trouble.of === signIn?.id || trouble.of === signIn?.accessToken),
    );
    return found?.error.message;
  }

  /** Has the service be asked once more for what it has ended, or could not renew: whoever keeps the account says that this was a mistake. */
  askAgain(name: string): void {
    const signIn = this.#options.secrets.findSignIn(name);
    if (!signIn) return;
    this.#ended.delete(signIn.id);
    this.#trouble.delete(name);
  }

  /** The service has taken a token: the refresh token before it is not needed any more. */
  accepted(token: string): void {
    const { secrets, log } = this.#options;
    const held = secrets.findHolder(token);
    if (!held || held.signIn.previous === null || held.signIn.accessToken !== token) return;
    try {
      secrets.putSignIn(held.name, { ...held.signIn, previous: null });
    } catch (error) {
      // One more than is needed is kept until the next answer.
      log.warn({ account: held.name, reason: messageOf(error) }, 'that renewed tokens work could not be written');
    }
  }

  /**
   * Whether there is another token in place of one that the service has refused with 401. One that was renewed within a minute is good:
   * what is refused then is the question.
   * @param isDead a probe was refused too: it is renewed once more, unless it was never seen to work
   * @throws SignInError where nothing is known of it for now
   */
  async renewRefused(token: string, isDead = false): Promise<boolean> {
    const { secrets } = this.#options;
    const held = secrets.findHolder(token);
    if (!held) return false;
    const { accessToken, previous, id } = held.signIn;
    if (accessToken !== token) return true;
    if (!this.#canRenew(held.signIn)) return false;
    const isYoung = performance.now() - (this.#renewedAt.get(id) ?? Number.NEGATIVE_INFINITY) < SHORTEST_LIFE_MS;
    if (isYoung && this.#unchanged.get(id) === token) throw sameAgain(held.name);
    if (isYoung && (!isDead || previous !== null)) return false;
    await this.#refresh(held.name);
    if (secrets.findHolder(token)?.signIn.accessToken !== token) return true;
    if (this.#unchanged.get(id) === token && !this.#ended.has(id)) throw sameAgain(held.name);
    return false;
  }

  /** Who ends begins nothing whose answer nobody would take. */
  #canRenew({ id, refreshToken }: SignIn): boolean {
    return refreshToken !== null && !this.#ended.has(id) && !this.#closed;
  }

  #refresh(name: string): Promise<void> {
    const { ending, wait } = this.#options;
    const known = this.#refreshing.get(name);
    // No word of the service's: nobody is parked by it.
    if (!known && ending.aborted)
      return Promise.reject(new SignInError('unavailable', `the sign-in of ${name} is not renewed: ringneck is ending`));
    const running = known ?? wait(this.#refreshOnce(name)).finally(() => this.#refreshing.delete(name));
    this.#refreshing.set(name, running);
    return running;
  }

  async #refreshOnce(name: string): Promise<void> {
    const { secrets, openOAuth, listOthers, now, log, onEnded, onEnding } = this.#options;
    const unwritten = this.#unwritten.get(name);
    if (unwritten) return this.#keepAgain(name, unwritten);
    const found = secrets.findSignIn(name);
    if (!found?.refreshToken) return;
    const known = this.#trouble.get(name);
    const trouble = known?.of === found.id ? known : undefined;
    if (trouble && performance.now() < trouble.until) throw trouble.error;
    try {
      const oauth = await openOAuth();
      // Once the service has answered nothing is waited for: whoever is killed meanwhile loses the pair.
      const others = await listOthers(name);
      const signIn = secrets.findSignIn(name);
      // Removed, or in the place of another one, meanwhile.
      if (signIn?.id !== found.id) return;
      const { tokenUrl } = oauth;
      ensureGivenBy(name, signIn, tokenUrl);
      // A disk that takes nothing now would lose what the service gives once.
      secrets.putSignIn(name, { ...signIn, tokenUrl });
      await this.#options.ensureOurs();
      const { answer, used } = await useRefreshToken(oauth, signIn);
      await this.#keep(name, { ...renewed(signIn, answer, used, now()), tokenUrl }, others);
    } catch (error) {
      if (error instanceof SignInError && error.kind === 'invalid_grant') {
        this.#ended.add(found.id);
        return onEnded(name, found);
      }
      const failure = error instanceof SignInError ? error : new SignInError('unavailable', messageOf(error), { cause: error });
      const next = troubleAfter(trouble, found.id, failure, jitter(found));
      this.#trouble.set(name, next);
      const facts = { account: name, kind: failure.kind, reason: failure.message, failures: next.failures };
      log.warn(facts, 'the sign-in could not be renewed: it is tried again');
      if (now() >= endingAt(found)) onEnding(name, failure.message);
      throw failure;
    }
  }

  /** Throws SignInError where it cannot be written, and where another account has what came: nothing of that is kept, nor taken back. */
  async #keep(name: string, signIn: SignIn, others: readonly string[]): Promise<void> {
    const { secrets, log } = this.#options;
    const { accessToken, refreshToken, previous } = signIn;
    // What was used already has the service end them all.
    if (isReplaced(signIn, accessToken))
      throw new SignInError('unavailable', `the service answered with tokens that ${name} had before: ${IS_CACHED} ${loginCommand(name)}`);
    let other: string | undefined;
    try {
      // Accounts of before may share a refresh token that is never replaced.
      other = secrets.findOwner([accessToken, refreshToken === previous ? undefined : refreshToken], others);
      if (other === undefined) await this.#write(name, signIn);
      this.#unwritten.delete(name);
    } catch (error) {
      this.#unwritten.set(name, signIn);
      log.error(
        { account: name, reason: messageOf(error) },
        'renewed tokens cannot be written: the sign-in is lost when ringneck ends before they are',
      );
      throw new SignInError('unavailable', `the renewed tokens of ${name} cannot be written: ${messageOf(error)}`, { cause: error });
    }
    if (other === undefined) return;
    const said = `the service answered with the tokens of ${other}, which are not kept for ${name}`;
    throw new SignInError('unavailable', `${said}: ${IS_CACHED} ${loginCommand(name)}`);
  }

  async #write(name: string, signIn: SignIn): Promise<void> {
    const { secrets, log, takeBack } = this.#options;
    this.#trouble.delete(name);
    this.#renewedAt.set(signIn.id, performance.now());
    const held = secrets.findSignIn(name);
    if (held?.accessToken === signIn.accessToken) this.#unchanged.set(signIn.id, signIn.accessToken);
    else this.#unchanged.delete(signIn.id);
    if (held?.id === signIn.id) {
      secrets.putSignIn(name, signIn);
      log.info({ account: name }, 'the sign-in is renewed');
    } else {
      log.info({ account: name }, 'the account was given something else while its sign-in was renewed: that is not kept');
      await takeBack(name, signIn);
    }
  }

  /** @throws SignInError where renewed tokens are on no disk yet: this object alone has them */
  async ensureWritten(): Promise<void> {
    for (const [name, signIn] of this.#unwritten) await this.#keepAgain(name, signIn);
  }

  async #keepUnwritten(): Promise<void> {
    await Promise.allSettled([...this.#unwritten].map(([name, signIn]) => this.#keepAgain(name, signIn)));
  }

  async #keepAgain(name: string, signIn: SignIn): Promise<void> {
    const others = await this.#options.listOthers(name);
    // Kept meanwhile, it may have been renewed since.
    if (this.#unwritten.get(name) === signIn) await this.#keep(name, signIn, others);
  }
}

const IS_CACHED = 'is there a cache before RINGNECK_TOKEN_URL? If it stays so:';

/** A cache may have said so: that the service refuses the token is no proof that it would give no other. */
const sameAgain = (name: string) =>
  new SignInError('unavailable', `its renewal has brought the same token once more: ${IS_CACHED} ${loginCommand(name)}`);

class AnotherPersonError extends SignInError {
  constructor() {
    super('unavailable', 'the renewed token is that of another person');
  }
}

/**
 * Uses a refresh token of a sign-in up. Where the newest is nothing to the service, the one before may be: it was never told that we have the
 * newest. Throws SignInError.
 */
export async function useRefreshToken(
  oauth: Pick<Renewing, 'refresh'>,
  { refreshToken, previous }: Pick<SignIn, 'refreshToken' | 'previous'>,
): Promise<{ answer: TokenAnswer; used: string }> {
  const tokens = [refreshToken, previous].filter(token => token !== null);
  for (const used of tokens) {
    try {
      return { answer: await oauth.refresh(used), used };
    } catch (error) {
      if (used === tokens.at(-1) || !(error instanceof SignInError) || error.kind !== 'invalid_grant') throw error;
    }
  }
  throw new SignInError('invalid_grant', 'there is no refresh token');
}

/** @throws SignInError where another address has given the tokens: it gets none of them */
export function ensureGivenBy(name: string, { tokenUrl }: Pick<SignIn, 'tokenUrl'>, ours: string): void {
  if (tokenUrl === undefined || tokenUrl === ours) return;
  throw new SignInError(
    'client',
    `the tokens of ${name} are of ${tokenUrl}, and RINGNECK_TOKEN_URL is ${ours} now: set it back, or ${loginCommand(name)}`,
  );
}

/**
 * Of a code that was exchanged.
 * @param asked the scopes that the person was asked for
 * @param tokenUrl the address that has answered
 */
export function beginSignIn(id: string, answer: TokenAnswer, asked: readonly string[], nowMs: number, tokenUrl?: string): SignIn {
  // Words that are none of ours tell nothing of what was granted; in the address a person may have written any.
  const known = answer.scopes?.filter(scope => asked.includes(scope) || isScope(scope));
  const told = known?.some(scope => asked.includes(scope)) ? known : undefined;
  return {
    id,
    ...pairOf(answer, nowMs),
    refreshToken: answer.refreshToken ?? null,
    scopes: [...(told ?? asked)],
    ...(told ? {} : { areScopesTold: false as const }),
    previous: null,
    ...(tokenUrl === undefined ? {} : { tokenUrl }),
  };
}

/**
 * A service that sends no new refresh token goes on to take the one that was used. What a renewal says of scopes takes nothing away: a
 * scope that is gone is refused.
 */
export function renewed(signIn: SignIn, answer: TokenAnswer, used: string, nowMs: number): SignIn {
  return {
    ...signIn,
    ...pairOf(answer, nowMs),
    refreshToken: answer.refreshToken ?? used,
    previous: used,
    // Whose the same one is has been asked.
    ...(answer.accessToken === signIn.accessToken ? {} : { earlier: earlierWith(signIn), unprovenSince: signIn.unprovenSince ?? nowMs }),
  };
}

const pairOf = ({ accessToken, expiresIn }: TokenAnswer, nowMs: number): Pick<SignIn, 'accessToken' | 'expiresAt' | 'refreshedAt'> => ({
  accessToken,
  // A shorter one would have each request renew it; a longer one would be used when it has ended.
  expiresAt: expiresIn === undefined ? null : nowMs + Math.max(expiresIn, 1) * 1000,
  refreshedAt: nowMs,
});

/** When a token is to be renewed: at half of its life, and up to a tenth later, so that accounts that signed in together are not renewed together. */
export const dueAt = (signIn: SignIn): number =>
  signIn.expiresAt === null
    ? Number.POSITIVE_INFINITY
    : signIn.refreshedAt + (signIn.expiresAt - signIn.refreshedAt) * (0.5 + jitter(signIn) / 10);

/** From when on somebody is told that a token cannot be renewed: a last quarter of its life is left to do something about it. */
const endingAt = ({ expiresAt, refreshedAt }: SignIn): number =>
  expiresAt === null ? Number.POSITIVE_INFINITY : refreshedAt + (expiresAt - refreshedAt) * 0.75;

/** From 0 to 1: the same for one token whenever it is asked for. */
const jitter = ({ id, refreshedAt }: SignIn): number =>
  createHash('sha256').update(`${id} ${refreshedAt}`).digest().readUInt32BE() / 2 ** 32;
