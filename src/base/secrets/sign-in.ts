import { createHash, randomUUID } from 'node:crypto';
import { z } from 'zod';
import { RingneckError } from '../errors.ts';
import { loginCommand } from '../sign-in-again.ts';

const signIn = z.strictObject({
  /** The same for all tokens that came of one sign-in, and no other's. */
  id: z.string(),
  accessToken: z.string(),
  /** Works once. Null: the service gave none, and the sign-in ends with its access token. */
  refreshToken: z.string().nullable(),
  /** Milliseconds since the epoch by our clock, as `refreshedAt`; null: the service did not say. */
  expiresAt: z.number().nullable(),
  /** When the access token was given. */
  refreshedAt: z.number(),
  /** What the person allowed. */
  scopes: z.array(z.string()),
  /** False: the service has not said it, and `scopes` are those that were asked for. */
  areScopesTold: z.literal(false).optional(),
  /** The refresh token before, until the access token was seen to work. */
  previous: z.string().nullable(),
  /** Of the access tokens before, the last ones, by `digestOf`: a cache may answer with what was replaced long ago. */
  earlier: z.array(z.string()).optional(),
  /** The address that gives its tokens: no other gets the refresh token. Sign-ins of earlier versions are bound when they are renewed. */
  tokenUrl: z.string().optional(),
  /** Since when, in milliseconds, the service has not said whose the renewed tokens are. */
  unprovenSince: z.number().optional(),
  /** How often it was asked for that since then. */
  unprovenTries: z.int().optional(),
  /** Another folder has the same, and goes on to renew it: taken back at the service it would end there too. */
  isLeftToOriginal: z.literal(true).optional(),
  /** `since` of the account as its person had withdrawn before they signed in: what is left of that withdrawal is another sign-in. */
  afterWithdrawal: z.number().optional(),
});

/** What the service gave for an account whose person has signed in. */
export type SignIn = Readonly<z.infer<typeof signIn>>;

/** All that a sign-in holds, the access token first. */
export const tokensOf = ({ accessToken, refreshToken, previous }: SignIn): string[] =>
  [accessToken, refreshToken, previous].filter(token => token !== null);

const MOST_EARLIER = 16;

const digestOf = (token: string): string => createHash('sha256').update(token).digest().subarray(0, 16).toString('base64url');

/** The digests of a sign-in's earlier access tokens once it has another one than now. */
export const earlierWith = ({ earlier = [], accessToken }: SignIn): string[] => [...earlier, digestOf(accessToken)].slice(-MOST_EARLIER);

/** Whether an access token was of a sign-in that has another one since. */
export const isReplaced = ({ earlier = [] }: SignIn, accessToken: string): boolean =>
  earlier.length > 0 && earlier.includes(digestOf(accessToken));

/** The same, of tokens that are known to be of the same person, or taken for theirs. */
export function proven({ unprovenSince: _, unprovenTries: __, ...signIn }: SignIn): SignIn {
  return signIn;
}

/** What a new sign-in is told from all others by. */
export const newSignInId = (): string => randomUUID();

/** Reads what was sealed. @throws RingneckError where another version of ringneck has written what this one does not know */
export function readSignIn(text: string, name: string): SignIn {
  const read = signIn.safeParse(JSON.parse(text));
  if (read.success) return read.data;
  throw new RingneckError(
    `the sign-in of ${name} was written by another version of ringneck, which this one does not understand: go back to that one, or ${loginCommand(name)}`,
  );
}
