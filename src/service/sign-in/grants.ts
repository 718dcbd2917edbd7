import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { type Scope, scopes } from '../../../schema/scopes.ts';
import { writeFileAtomically } from '../../base/files.ts';
import { openJsonFile } from '../../base/json-file.ts';
import { createToken, hashToken, type TokenHolder, type TokenState } from '../tokens.ts';
import { OAuthError } from './oauth-error.ts';

export interface GrantOptions {
  /** Of the service. */
  folder: string;
  /** Of an access token, in real seconds. */
  tokenLifeSeconds: number;
  /** How many people may have granted something at a time; infinite without a limit. */
  peopleLimit: number;
  /** Ends all that was granted. */
  forget: boolean;
  /** Real time, in milliseconds. */
  now: () => number;
  /** Whether somebody's membership has lapsed. */
  isLapsed: (userId: string) => boolean;
}

/** What a code or a refresh token gives. */
export interface Issued {
  accessToken: string;
  refreshToken: string;
  /** Until the access token expires, in seconds. */
  expiresIn: number;
  scopes: readonly Scope[];
}

const CODE_LIFE_MS = 60_000;
/** Of one person. The oldest ends when there is one more. */
const MOST_GRANTS = 10;
/** Of one grant: a refresh leaves the access tokens before it alive, but no more than these. */
const MOST_ACCESS_TOKENS = 5;

const hash = z.string();
const grantRow = z.strictObject({
  user_id: z.string(),
  scopes: z.array(z.enum(scopes)),
  code: z.strictObject({ hash, ends_at: z.int(), redirect_uri: z.string(), challenge: z.string().nullable() }),
  /** The newest last; none as long as the code is unused. */
  access: z.array(z.strictObject({ hash, ends_at: z.int() })),
  /** Of the refresh token that is to come next: its first part, which is the same for the whole grant, and all of it. */
  refresh: z.strictObject({ grant: hash, token: hash }).nullable(),
  revoked: z.boolean(),
});
type Grant = z.infer<typeof grantRow>;

const grantsFile = z.strictObject({ format: z.literal(1), grants: z.array(grantRow) });

/** `rr_`, what is the same for the whole grant, and what changes each time: whoever has the former with another latter has used it twice. */
const REFRESH_TOKEN = /^(rr_[\w-]{22})[\w-]{43}$/;

/** What people have granted, and the codes and tokens that came of it; kept hashed in `grants.json`, on the disk before anything is answered. */
export class Grants {
  readonly #options: GrantOptions;
  readonly #path: string;
  #grants: readonly Grant[];
  #byHash: ReadonlyMap<string, Grant> = new Map();

  constructor(options: GrantOptions) {
    this.#options = options;
    this.#path = join(options.folder, 'grants.json');
    this.#grants = openJsonFile(this.#path, grantsFile).read()?.grants ?? [];
    this.#keep(this.#grants.map(grant => (options.forget ? revoked(grant) : grant)));
  }

  /** The code for what a person grants. It is for one use, within a minute. Throws OAuthError when there is one person too many. */
  grant(userId: string, granted: readonly Scope[], { redirectUri, challenge }: { redirectUri: string; challenge: string | null }): string {
    this.#requirePlace(userId);
    const code = createToken('rg');
    const ends_at = this.#options.now() + CODE_LIFE_MS;
    this.#keep([
      ...this.#grants,
      {
        user_id: userId,
        scopes: [...granted],
        code: { hash: hashToken(code), ends_at, redirect_uri: redirectUri, challenge },
        access: [],
        refresh: null,
        revoked: false,
      },
    ]);
    return code;
  }

  /** The first tokens of a grant. Throws OAuthError; a code that is used again ends all that it gave. */
  exchange(code: string, redirectUri: string, verifier: string | undefined): Issued {
    const hashed = hashToken(code);
    const grant = this.#byHash.get(hashed);
    if (grant?.code.hash !== hashed) throw new OAuthError('invalid_grant', 'The code is unknown.');
    if (grant.refresh !== null) {
      this.#revoke(grant);
      throw new OAuthError('invalid_grant', 'The code was used before: what it gave is revoked.');
    }
    if (grant.code.ends_at <= this.#options.now()) throw new OAuthError('invalid_grant', 'The code has expired.');
    if (grant.code.redirect_uri !== redirectUri)
      throw new OAuthError('invalid_grant', 'redirect_uri is not the one that the code was asked for with.');
    // A verifier without a challenge tells that somebody has taken the challenge out on the way.
    if (grant.code.challenge !== (verifier === undefined ? null : challengeOf(verifier)))
      throw new OAuthError('invalid_grant', 'code_verifier does not fit the code_challenge that the code was asked for with.');
    return this.#issue(grant, `rr_${randomBytes(16).toString('base64url')}`);
  }

  /** The next tokens of a grant. Throws OAuthError; a refresh token that is used again ends the whole grant. */
  refresh(token: string): Issued {
    const { grant, first } = this.#findRefresh(token);
    if (grant === undefined) throw new OAuthError('invalid_grant', 'The refresh token is unknown.');
    if (grant.revoked) throw new OAuthError('invalid_grant', 'What was granted is revoked.');
    if (grant.refresh?.token === hashToken(token)) return this.#issue(grant, first);
    this.#revoke(grant);
    throw new OAuthError('invalid_grant', 'The refresh token was used before: all tokens that came of this sign-in are revoked.');
  }

  /** Ends the grant that an access or refresh token came of. Does nothing for an unknown token. */
  revoke(token: string): void {
    const grant = this.#findRefresh(token).grant ?? this.#byHash.get(hashToken(token));
    if (grant) this.#revoke(grant);
  }

  /** Lets the tokens of a person expire, or ends all that the person has granted. */
  setTokenState(userId: string, state: TokenState): void {
    if (state !== 'expired' && state !== 'revoked') return;
    const ends_at = this.#options.now();
    const change = (grant: Grant): Grant => {
      if (grant.user_id !== userId) return grant;
      return state === 'revoked' ? revoked(grant) : { ...grant, access: grant.access.map(token => ({ ...token, ends_at })) };
    };
    this.#keep(this.#grants.map(change));
  }

  /** Whom an access token speaks for, and for what; undefined when nobody was given it. */
  findHolder(token: string): TokenHolder | undefined {
    const hashed = hashToken(token);
    const grant = this.#byHash.get(hashed);
    const found = grant?.access.find(access => access.hash === hashed);
    if (!grant || !found) return undefined;
    return { userId: grant.user_id, state: this.#stateOf(grant, found.ends_at), scopes: grant.scopes };
  }

  /** Who has granted something may do so again. */
  #requirePlace(userId: string): void {
    const { peopleLimit } = this.#options;
    const holding = new Set(this.#withoutEnded(this.#grants).flatMap(grant => (grant.revoked ? [] : [grant.user_id])));
    if (holding.has(userId) || holding.size < peopleLimit) return;
    throw new OAuthError(
      'access_denied',
      `The client has reached its limit of people, ${peopleLimit}: revoke the access of one of them first.`,
    );
  }

  #stateOf(grant: Grant, endsAt: number): TokenState {
    if (grant.revoked) return 'revoked';
    if (endsAt <= this.#options.now()) return 'expired';
    return this.#options.isLapsed(grant.user_id) ? 'lapsed' : 'active';
  }

  #issue(grant: Grant, first: string): Issued {
    const { now, tokenLifeSeconds: expiresIn } = this.#options;
    const accessToken = createToken();
    const refreshToken = first + randomBytes(32).toString('base64url');
    const access = [...grant.access, { hash: hashToken(accessToken), ends_at: now() + expiresIn * 1000 }].slice(-MOST_ACCESS_TOKENS);
    this.#replace(grant, { ...grant, access, refresh: { grant: hashToken(first), token: hashToken(refreshToken) } });
    return { accessToken, refreshToken, expiresIn, scopes: grant.scopes };
  }

  #findRefresh(token: string): { grant: Grant | undefined; first: string } {
    const first = REFRESH_TOKEN.exec(token)?.[1] ?? '';
    const hashed = hashToken(first);
    const grant = this.#byHash.get(hashed);
    return { grant: grant?.refresh?.grant === hashed ? grant : undefined, first };
  }

  #revoke(grant: Grant): void {
    this.#replace(grant, revoked(grant));
  }

  #replace(grant: Grant, by: Grant): void {
    this.#keep(this.#grants.map(one => (one === grant ? by : one)));
  }

  /** Once they are on the disk these are the grants. */
  #keep(changed: readonly Grant[]): void {
    const grants = this.#withoutEnded(changed);
    writeFileAtomically(this.#path, `${JSON.stringify({ format: 1, grants }, null, 2)}\n`);
    this.#grants = grants;
    this.#byHash = new Map(
      grants.flatMap(grant => {
        const hashes = [grant.code.hash, ...(grant.refresh ? [grant.refresh.grant] : []), ...grant.access.map(access => access.hash)];
        return hashes.map(one => [one, grant] as const);
      }),
    );
  }

  /** Without codes that nobody has used in time, and what is revoked and has expired. */
  #withoutEnded(grants: readonly Grant[]): Grant[] {
    const now = this.#options.now();
    const counts = new Map<string, number>();
    const limited = grants.toReversed().map(grant => {
      const count = (counts.get(grant.user_id) ?? 0) + (grant.revoked ? 0 : 1);
      counts.set(grant.user_id, count);
      return count > MOST_GRANTS ? revoked(grant) : grant;
    });
    return limited.toReversed().filter(grant => {
      if (grant.revoked) return grant.access.some(({ ends_at }) => ends_at > now);
      return grant.refresh !== null || grant.code.ends_at > now;
    });
  }
}

const revoked = (grant: Grant): Grant => ({ ...grant, revoked: true });

/** What is sent ahead of a verifier (RFC 7636, S256). */
const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');
