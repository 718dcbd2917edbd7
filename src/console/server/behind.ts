import { isOfAnother, isOfUnknownPerson, isWell, isWithdrawn, twinIn } from '../../app/fixes.ts';
import type { StatusReport } from '../../app/status-commands.ts';
import { accessCommand, mustSignInAgain } from '../../base/sign-in-again.ts';
import type { AnswerOf } from '../api/routes.ts';

export type Behind = AnswerOf<'GET operations'>['behind'][number];
type Account = StatusReport['accounts'][number];
type Access = Parameters<typeof accessCommand>[1];
type Told = Pick<Behind, 'cause' | 'helps' | 'action'>;

/**
 * Who is behind, why, and the one thing that helps.
 * @param canInvite whether links to sign in can be made here
 * @param settings without a client nobody can sign in: there is a token to give
 */
export function tellBehind(accounts: readonly Account[], canInvite: boolean, settings: Access = { signIn: {} }): Behind[] {
  return accounts.flatMap(account => {
    const told = account.state === 'active' ? tellActive(account) : tellClosed(account, canInvite, settings);
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

function tellClosed({ user_id: name, state, reason }: Account, canInvite: boolean, settings: Access): Told {
  const invite: Behind['action'] = canInvite ? { name: 'invite', label: 'Make a sign-in link', users: [name] } : null;
  const access = `a new ${settings.signIn ? 'sign-in by' : 'token of'} the person`;
  const command = accessCommand(name, settings);
  const resume = (label: string): Behind['action'] => ({ name: 'resume', label, users: [name] });
  const cause = tellCause({ state, reason });
  if (isWithdrawn(reason)) return { cause, helps: 'Nothing: they are read again only after another sign-in of theirs.', action: null };
  if (isOfUnknownPerson(reason)) return { cause, helps: reason ?? '', action: null };
  if (state === 'paused') return { cause, helps: 'Resume it to read on.', action: resume('Resume') };
  if (mustSignInAgain(reason))
    return { cause, helps: canInvite ? 'A new sign-in by the person.' : `A${access.slice(1)}: ${command}`, action: invite };
  if (reason?.startsWith('forbidden')) {
    return { cause, helps: 'Once the person has renewed it there, try again.', action: resume('Try again') };
  }
  if (reason?.startsWith('unauthorized')) {
    return { cause, helps: `What is missing is read by itself after ${access}${canInvite ? '.' : `: ${command}`}`, action: invite };
  }
  return { cause, helps: 'Once that is mended, try again.', action: resume('Try again') };
}

/** Why an account is not read, in the same words on every screen. */
export function tellCause({ state, reason }: Pick<Account, 'state' | 'reason'>): string {
  if (isWithdrawn(reason)) return 'The person has withdrawn.';
  if (isOfAnother(reason)) return 'The new token is that of another person.';
  const twin = twinIn(reason)?.replace(/:$/, '');
  if (twin) return `The person is read already, as ${twin}.`;
  if (isOfUnknownPerson(reason)) return 'It is not known whether the new token is of the same person.';
  if (state === 'paused') return 'Paused by hand.';
  if (mustSignInAgain(reason)) return 'The service has ended the sign-in.';
  if (reason?.startsWith('forbidden')) return 'The service refuses: the membership has ended, or a permission is missing (403).';
  if (reason?.startsWith('unauthorized')) return 'The service refuses the token (401).';
  return reason ?? 'Nobody has said why.';
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

/** What keeps everybody. */
interface Keeping {
  /** Why nothing can be stored. */
  full?: string | null;
  queueProblem: string | null;
  silence: string | null;
  hasOwner: boolean;
}

/** What an operator is to know first. */
export function tellOperations(behind: readonly Behind[], { full = null, queueProblem, silence, hasOwner }: Keeping): string {
  if (!hasOwner) return 'ringneck up does not run: nothing is read, and nothing can be done here but look.';
  const inNeed = behind.filter(({ state }) => state !== 'withdrawn').length;
  const first = inNeed ? `${inNeed} ${inNeed === 1 ? 'person needs' : 'people need'} a hand.` : 'Nobody needs a hand.';
  const rest = [
    silence === null ? '' : `The service cannot be reached: ${ended(silence)}`,
    queueProblem === null ? '' : `The queue cannot be used: ${ended(queueProblem)}`,
  ];
  return [full ?? '', first, ...rest].filter(Boolean).join(' ');
}

/** What ends with a question needs no full stop. */
const ended = (text: string) => (/[.?!]$/.test(text) ? text : `${text}.`);
