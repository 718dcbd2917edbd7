import { createHash } from 'node:crypto';
import { messageOf, RingneckError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Secrets } from '../base/secrets/secrets.ts';
import type { SignIn } from '../base/secrets/sign-in.ts';
import { SignInError } from './error.ts';
import type { OAuthClient, TokenAnswer } from './oauth.ts';

export interface SignInsOptions {
  secrets: Pick<Secrets, 'findSignIn' | 'findHolder' | 'putSignIn'>;
  /** @throws UsageError where the client is not set */
  openOAuth(): Promise<Pick<OAuthClient, 'refresh' | 'revoke'>>;
  /** Milliseconds since the epoch. */
  now: () => number;
  log: Log;
  /** The accounts whose sign-ins are to be kept alive. */
  listKept(): Promise<readonly string[]>;
  /** A sign-in is over: its person must sign in again. */
  onEnded(name: string, signIn: SignIn): Promise<void>;
}

/** How often it is looked whether a token is to be renewed: the shortest-lived ones that are sensible live for some minutes. */
const LOOK_MS = 15_000;
/** A machine that has slept finds all accounts due at once. */
const SIDE_BY_SIDE = 4;
const FIRST_BACKOFF_MS = 5_000;
const LONGEST_BACKOFF_MS = 15 * 60_000;
/** A token that was renewed and is refused at once is not renewed again: the refusal has another cause. */
const SHORTEST_LIFE_MS = 60_000;

/** How long nobody is asked after a failure. */
interface Trouble {
  /** The sign-in's. */
  id: string;
  failures: number;
  until: number;
  error: SignInError;
}

/**
 * Keeps the sign-ins of a data folder alive: renews each token at half of its life, and when it has ended or the service says so; of one
 * account once at a time. Only the process that owns the folder has one. A new pair of tokens is on the disk before it is used, and the
 * refresh token before stays beside it until the new access token was seen to work.
 */
export class SignIns {
  readonly #options: SignInsOptions;
  readonly #refreshing = new Map<string, Promise<void>>();
  readonly #trouble = new Map<string, Trouble>();
  /** Sign-ins that the service has ended, by id. */
  readonly #ended = new Set<string>();
  /** New ones that the disk did not take: the service knows no others any more. */
  readonly #unwritten = new Map<string, SignIn>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: SignInsOptions) {
    this.#options = options;
  }

  /** Begins to renew tokens before they end. */
  start(): void {
    const look = () =>
      void this.renewDue().catch(error => {
        // The ledger is closed then.
        if (!this.#closed) this.#options.log.warn({ reason: messageOf(error) }, 'sign-ins were not looked at');
      });
    this.#timer ??= setInterval(look, LOOK_MS).unref();
    look();
  }

  /** Waits for what was asked for: an answer that nobody takes would lose the account. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await Promise.allSettled(this.#refreshing.values());
    for (const [name, signIn] of this.#unwritten) this.#tryWrite(name, signIn);
  }

  /** Renews each token that has lived for half of its life. What fails is tried again later, and told in the log. */
  async renewDue(): Promise<void> {
    const due = (await this.#options.listKept()).filter(name => this.#isDue(name)).values();
    const renewSome = async () => {
      for (const name of due) await this.#refresh(name).catch(() => undefined);
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
   * @throws SignInError where it has ended and the service gives no other for now
   */
  async current(token: string): Promise<string> {
    const { secrets, now } = this.#options;
    const held = secrets.findHolder(token);
    if (!held) return token;
    const { expiresAt, accessToken } = held.signIn;
    if (expiresAt === null || now() < expiresAt || !this.#canRenew(held.signIn)) return accessToken;
    await this.#refresh(held.name);
    return secrets.findHolder(token)?.signIn.accessToken ?? token;
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
   * Whether there is another token in place of one that the service has refused with 401.
   * @throws SignInError where nothing is known of it for now
   */
  async renewRefused(token: string): Promise<boolean> {
    const { secrets, now } = this.#options;
    const held = secrets.findHolder(token);
    if (!held) return false;
    if (held.signIn.accessToken !== token) return true;
    const isYoung = held.signIn.previous !== null && Math.abs(now() - held.signIn.refreshedAt) < SHORTEST_LIFE_MS;
    if (isYoung || !this.#canRenew(held.signIn)) return false;
    await this.#refresh(held.name);
    return secrets.findHolder(token)?.signIn.accessToken !== token;
  }

  /** Who ends begins nothing whose answer nobody would take. */
  #canRenew({ id, refreshToken }: SignIn): boolean {
    return refreshToken !== null && !this.#ended.has(id) && !this.#closed;
  }

  #refresh(name: string): Promise<void> {
    const running = this.#refreshing.get(name) ?? this.#refreshOnce(name).finally(() => this.#refreshing.delete(name));
    this.#refreshing.set(name, running);
    return running;
  }

  async #refreshOnce(name: string): Promise<void> {
    const { secrets, openOAuth, now, log, onEnded } = this.#options;
    const unwritten = this.#unwritten.get(name);
    if (unwritten) return this.#write(name, unwritten);
    const signIn = secrets.findSignIn(name);
    if (!signIn?.refreshToken) return;
    const known = this.#trouble.get(name);
    const trouble = known?.id === signIn.id ? known : undefined;
    if (trouble && now() < trouble.until) throw trouble.error;
    try {
      const oauth = await openOAuth();
      // A disk that takes nothing now would lose what the service gives once.
      secrets.putSignIn(name, signIn);
      const { answer, used } = await this.#ask(oauth, signIn);
      this.#trouble.delete(name);
      await this.#keep(oauth, name, renewed(signIn, answer, used, now()), answer);
    } catch (error) {
      if (error instanceof SignInError && error.kind === 'invalid_grant') {
        this.#ended.add(signIn.id);
        return onEnded(name, signIn);
      }
      const failure = error instanceof SignInError ? error : new SignInError('unavailable', messageOf(error), { cause: error });
      const failures = (trouble?.failures ?? 0) + 1;
      const backoffMs = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1)) * (0.5 + jitter(signIn) / 2);
      this.#trouble.set(name, { id: signIn.id, failures, until: now() + backoffMs, error: failure });
      const facts = { account: name, kind: failure.kind, reason: failure.message, failures };
      log.warn(facts, 'the sign-in could not be renewed: it is tried again');
      throw failure;
    }
  }

  /** Where the newest refresh token is nothing to the service, the one before may be: it was never told that we have the newest. */
  async #ask(oauth: Pick<OAuthClient, 'refresh'>, signIn: SignIn): Promise<{ answer: TokenAnswer; used: string }> {
    const { refreshToken, previous } = signIn;
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

  async #keep(oauth: Pick<OAuthClient, 'revoke'>, name: string, signIn: SignIn, answer: TokenAnswer): Promise<void> {
    const { secrets, log } = this.#options;
    if (secrets.findSignIn(name)?.id === signIn.id) {
      this.#write(name, signIn);
      log.info({ account: name }, 'the sign-in is renewed');
      return;
    }
    log.info({ account: name }, 'the account was given something else while its sign-in was renewed: that is not kept');
    await oauth.revoke(answer).catch(() => undefined);
  }

  #write(name: string, signIn: SignIn): void {
    const error = this.#tryWrite(name, signIn);
    if (error)
      throw new SignInError('unavailable', `the renewed tokens of ${name} cannot be written: ${messageOf(error)}`, { cause: error });
  }

  /** Gives what went wrong. */
  #tryWrite(name: string, signIn: SignIn): unknown {
    const { secrets, log } = this.#options;
    try {
      if (secrets.findSignIn(name)?.id === signIn.id) secrets.putSignIn(name, signIn);
      this.#unwritten.delete(name);
      return undefined;
    } catch (error) {
      this.#unwritten.set(name, signIn);
      log.error(
        { account: name, reason: messageOf(error) },
        'renewed tokens cannot be written: the sign-in is lost when ringneck ends before they are',
      );
      return error;
    }
  }
}

/** Of a code that was exchanged. */
export function beginSignIn(id: string, answer: TokenAnswer, asked: readonly string[], nowMs: number): SignIn {
  const before = { id, accessToken: '', refreshToken: null, expiresAt: null, refreshedAt: 0, scopes: [...asked], previous: null };
  return { ...renewed(before, answer, '', nowMs), refreshToken: answer.refreshToken ?? null, previous: null };
}

/** A service that sends no new refresh token goes on to take the one that was used. */
function renewed(signIn: SignIn, { accessToken, refreshToken, expiresIn, scopes }: TokenAnswer, used: string, nowMs: number): SignIn {
  return {
    id: signIn.id,
    accessToken,
    refreshToken: refreshToken ?? used,
    expiresAt: expiresIn === undefined ? null : nowMs + expiresIn * 1000,
    refreshedAt: nowMs,
    scopes: scopes ? [...scopes] : signIn.scopes,
    previous: used,
  };
}

/** When a token is to be renewed: at half of its life, and up to a tenth later, so that accounts that signed in together are not renewed together. */
export const dueAt = (signIn: SignIn): number =>
  signIn.expiresAt === null
    ? Number.POSITIVE_INFINITY
    : signIn.refreshedAt + (signIn.expiresAt - signIn.refreshedAt) * (0.5 + jitter(signIn) / 10);

/** From 0 to 1: the same for one token whenever it is asked for. */
const jitter = ({ id, refreshedAt }: SignIn): number =>
  createHash('sha256').update(`${id} ${refreshedAt}`).digest().readUInt32BE() / 2 ** 32;
