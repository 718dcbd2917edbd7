import { isOfUnknownPerson, isWell, isWithdrawn } from '../../app/fixes.ts';
import type { StatusReport } from '../../app/status-commands.ts';
import { mustSignInAgain } from '../../base/sign-in-again.ts';
import type { AnswerOf } from '../api/routes.ts';

export type Behind = AnswerOf<'GET operations'>['behind'][number];
type Account = StatusReport['accounts'][number];
type Told = Pick<Behind, 'cause' | 'helps' | 'action'>;

/** Who is behind, why, and the one thing that helps. @param canInvite whether links to sign in can be made here */
export function tellBehind(accounts: readonly Account[], canInvite: boolean): Behind[] {
  return accounts.flatMap(account => {
    const told = account.state === 'active' ? tellActive(account) : tellClosed(account, canInvite);
    if (!told) return [];
    return [{ id: account.user_id, since: sinceOf(account), state: stateOf(account), ...told }];
  });
}

const secondsOf = (moment: string) => Math.floor(Date.parse(moment) / 1000);

/** Of an active account when what fails was read last; null: nothing fails, or it was never read. */
function sinceOf({ state, since, collections }: Account): number | null {
  if (state !== 'active') return secondsOf(since);
  const failing = collections.filter(collection => !isWell(collection) && collection.failures > 0);
  const read = failing.flatMap(({ last_success: last }) => (last === null ? [] : [secondsOf(last)]));
  return read.length ? Math.min(...read) : null;
}

/** Nobody can do anything about who has withdrawn: no hand is needed. */
function stateOf({ state, reason }: Account): string {
  if (state === 'active') return 'failed';
  return isWithdrawn(reason) ? 'withdrawn' : state;
}

function tellClosed({ user_id: name, state, reason }: Account, canInvite: boolean): Told {
  const invite: Behind['action'] = canInvite ? { name: 'invite', label: 'Make a sign-in link', users: [name] } : null;
  const signIn = canInvite ? 'A new sign-in by the person.' : `A new sign-in by the person: ringneck account login ${name}`;
  const resume = (label: string): Behind['action'] => ({ name: 'resume', label, users: [name] });
  if (isWithdrawn(reason)) {
    return {
      cause: 'The person has withdrawn.',
      helps: 'Nothing: they are read again only after another sign-in of theirs.',
      action: null,
    };
  }
  if (isOfUnknownPerson(reason)) {
    return { cause: 'It is not known whether the new token is of the same person.', helps: reason ?? '', action: null };
  }
  if (state === 'paused') return { cause: 'Paused by hand.', helps: 'Resume it to read on.', action: resume('Resume') };
  if (mustSignInAgain(reason)) return { cause: 'The service has ended the sign-in.', helps: signIn, action: invite };
  if (reason?.startsWith('forbidden')) {
    return {
      cause: 'The service refuses: the membership has ended, or a permission is missing (403).',
      helps: 'Once the person has renewed it there, try again.',
      action: resume('Try again'),
    };
  }
  if (reason?.startsWith('unauthorized')) {
    return { cause: 'The service refuses the token (401).', helps: `${signIn} What is missing is then read by itself.`, action: invite };
  }
  return { cause: reason ?? 'Nobody has said why.', helps: 'Once that is mended, try again.', action: resume('Try again') };
}

function tellActive({ user_id: name, collections }: Account): Told | undefined {
  const wrong = collections.filter(collection => !isWell(collection) && collection.unread_days > 0);
  if (!wrong.length) return undefined;
  const most = Math.max(...wrong.map(({ unread_days: days }) => days));
  const named = wrong.length > 3 ? `${wrong.length} collections` : wrong.map(collection => collection.name).join(', ');
  const reason = wrong.find(collection => collection.reason !== null)?.reason;
  return {
    cause: `${most === 1 ? '1 day' : `Up to ${most} days`} of ${named} ${most === 1 ? 'is' : 'are'} unread${reason ? `: ${reason}` : '.'}`,
    helps: 'Read what is missing.',
    action: { name: 'repair', label: 'Repair…', users: [name], collections: wrong.map(collection => collection.name) },
  };
}

/** What an operator is to know first. */
export function tellOperations(
  behind: readonly Behind[],
  { queueProblem, silence, hasOwner }: { queueProblem: string | null; silence: string | null; hasOwner: boolean },
): string {
  if (!hasOwner) return 'ringneck up does not run: nothing is read, and nothing can be done here but look.';
  const inNeed = behind.filter(({ state }) => state !== 'withdrawn').length;
  const first = inNeed ? `${inNeed} ${inNeed === 1 ? 'person needs' : 'people need'} a hand.` : 'Nobody needs a hand.';
  const rest = [
    silence === null ? '' : `The service cannot be reached: ${silence}.`,
    queueProblem === null ? '' : `The queue cannot be used: ${queueProblem}.`,
  ];
  return [first, ...rest].filter(Boolean).join(' ');
}
