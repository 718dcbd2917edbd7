import { RingneckError, shownMessageOf, TryLaterError } from '../../base/errors.ts';
import { findAccount, howLeft, shownAccount } from '../../ledger/accounts.ts';
import type { App } from '../app.ts';
import { ensureEnrolment } from '../ensure-there.ts';
import { storeTold } from '../participants.ts';
import type { BadLine, PersonLine } from '../people-file.ts';
import { inviteAccount, listInvitations } from './invitations.ts';

/** What became of a line. */
export interface InvitedLine {
  line: number;
  user_id: string;
  /** Unchanged: the account is read already, has a link that can still be used, or has left. */
  result: 'invited' | 'unchanged' | 'failed';
  /** Shown here once and never again. */
  url: string | null;
  expires_at: string | null;
  reason: string | null;
}

export interface InvitedPeople {
  people: InvitedLine[];
  /** When there are any, nothing was done. */
  bad: BadLine[];
}

export const inviteManyCommands = { inviteAccounts };

/**
 * Makes a link for each line whose account needs one, and stores what the lines tell of participants. A link that can still be used stays,
 * for somebody may have it already, unless it is to be replaced.
 */
async function inviteAccounts(
  app: App,
  { people, days, replace }: { people: readonly PersonLine[]; days: number; replace: boolean },
): Promise<InvitedPeople> {
  ensureEnrolment(app.settings);
  const bad = await storeTold(app, people);
  if (bad.length) return { people: [], bad };
  const open = new Map(
    (await listInvitations(app)).flatMap(one => (one.state === 'open' ? [[one.user_id, `${one.expires_at?.slice(0, 16)}Z`]] : [])),
  );
  const lines: InvitedLine[] = [];
  for (const { line, name } of people)
    lines.push({ line, user_id: name, ...(await inviteOne(app, name, { days, replace, until: open.get(name) })) });
  return { people: lines, bad };
}

interface Wanted {
  days: number;
  replace: boolean;
  /** When the link ends that the name has; undefined where it has none that can be used. */
  until: string | undefined;
}

const unchanged = (reason: string) => ({ result: 'unchanged', url: null, expires_at: null, reason }) as const;

async function inviteOne(app: App, name: string, { days, replace, until }: Wanted): Promise<Omit<InvitedLine, 'line' | 'user_id'>> {
  const another = `ringneck account invite ${name} makes another in its place`;
  if (until !== undefined && !replace) return unchanged(`has a link until ${until}; ${another}`);
  const account = await findAccount(app.warehouse, name);
  if (account && shownAccount(account, app.secrets).state === 'active') return unchanged('is read already');
  // A file is given again whenever somebody joins: who has left is not written to again by that.
  const left = await howLeft(app.warehouse, name);
  if (left && until !== undefined) return unchanged(`${left}, and has a link until ${until}, which stays; ${another}`);
  if (left) return unchanged(`${left}: ringneck account invite ${name} invites them all the same`);
  try {
    const { url, expires_at } = await inviteAccount(app, { name, days });
    return { result: 'invited', url, expires_at, reason: null };
  } catch (error) {
    if (!(error instanceof RingneckError) || error instanceof TryLaterError) throw error;
    return { result: 'failed', url: null, expires_at: null, reason: shownMessageOf(error) };
  }
}
