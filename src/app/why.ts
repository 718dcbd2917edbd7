import { groupBy } from '../base/items.ts';
import { getAccount } from '../ledger/accounts.ts';
import { isSignInOver, isWithdrawn } from '../ledger/unproven.ts';
import type { CollectionStatus } from '../sync/status.ts';
import type { App } from './app.ts';
import { isWell, READ_MISSING, readFirst } from './fixes.ts';
import { type StatusReport, statusCommands } from './status-commands.ts';
import { listLeftOf } from './take-back.ts';

export interface WhyReport {
  user_id: string;
  /** A few, the most telling first. */
  sentences: string[];
}

/** Why an account is behind, or what of it is missing, in a few sentences. */
export const whyCommands = { why };

async function why(app: App, { name }: { name: string }): Promise<WhyReport> {
  await getAccount(app.warehouse, name);
  const report = await statusCommands.status(app);
  const account = report.accounts.find(({ user_id: user }) => user === name);
  const isLeft = listLeftOf(app.secrets, name).length > 0;
  return { user_id: name, sentences: [...(account ? tellWhy(account, report) : []), ...(isLeft ? [tellLeft(name)] : [])] };
}

const tellLeft = (name: string) =>
  `A sign-in of ${name} that has ended is not known to be taken back at the service: ringneck up tries it each day for 30 days, and the person can end the access there.`;

type Account = StatusReport['accounts'][number];

/** @param report of the whole folder: what is in everybody's way is in this one's */
export function tellWhy(
  account: Account,
  { service_unreachable: silence, queue }: Pick<StatusReport, 'service_unreachable' | 'queue'>,
): string[] {
  const { user_id: name, state, since, reason, sign_in: signIn } = account;
  const sentences: string[] = [];
  if (state !== 'active') {
    const resume = state === 'paused' && !isWithdrawn(reason) ? `: ringneck account resume ${name}` : '';
    sentences.push(`${name} is ${state} since ${since.slice(0, 16)}Z, and not read${reason ? ` (${reason})` : ''}${resume}.`);
  }
  if (silence) sentences.push(`The service cannot be reached since ${silence.since.slice(0, 16)}Z: ${silence.reason}.`);
  if (queue.problem) sentences.push(`The queue cannot be used: ${queue.problem}.`);
  if (signIn?.problem) sentences.push(`The sign-in of ${name} cannot be renewed for now: ${signIn.problem}.`);
  if (signIn && !signIn.is_renewed && !isSignInOver(reason))
    sentences.push(`The sign-in of ${name} is not renewed: ringneck account login ${name}.`);
  sentences.push(...tellCollections(account), ...tellNewest(account));
  return sentences;
}

/** Collections of which the same is to be said, together. */
function tellCollections({ user_id: name, state, collections }: Account): string[] {
  if (collections.every(({ state }) => state === 'never_asked')) {
    const how = state === 'active' ? `: ${readFirst(name)}` : '';
    return [`Nothing of ${name} was ever read${how}.`];
  }
  const wrong = collections.filter(collection => !isWell(collection) || ['pending', 'not_authorised'].includes(collection.state));
  const alike = [...groupBy(wrong, ({ state, reason }) => `${state}\n${reason ?? ''}`).values()];
  const told = alike.map(
    ([first, ...rest]) =>
      `${listNames([first, ...rest])}: ${WORDS[first.state] ?? first.state}${first.reason ? ` (${first.reason})` : ''}.`,
  );
  return wrong.some(({ state, unread_days: days }) => state !== 'pending' && days > 0) ? [...told, `${READ_MISSING}.`] : told;
}

const listNames = (collections: readonly CollectionStatus[]) => collections.map(({ name }) => name).join(', ');

const WORDS: Readonly<Record<string, string>> = {
  not_asked: 'the last days were not read',
  holes: 'days between were never read, or failed',
  failed: 'the last reading failed',
  suspicious: 'the service showed less than is stored, and nothing was removed',
  not_authorised: 'the token does not allow it',
  pending: 'a run under way reads it',
  interrupted: 'its run was interrupted, and the next start goes on with it',
  never_asked: 'never asked for',
};

/** What came last, and, where all was read, that nothing newer is there to be had. */
function tellNewest({ state, collections }: Account): string[] {
  const newest = collections
    .map(({ newest_day: day }) => day ?? '')
    .sort()
    .at(-1);
  if (!newest) return [];
  const isRead = state === 'active' && collections.every(collection => isWell(collection) && collection.state !== 'pending');
  return isRead
    ? [
        `All that was asked for was read, up to yesterday, and the newest day that the service had is ${newest}: if that is old, was the ring worn, and did its phone sync?`,
      ]
    : [`The newest day that is stored is ${newest}.`];
}
