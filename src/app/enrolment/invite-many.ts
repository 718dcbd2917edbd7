import { RingneckError, shownMessageOf, TryLaterError } from '../../base/errors.ts';
import { changeAccounts, findAccount, howLeft, shownAccount } from '../../ledger/accounts.ts';
import { type Link, listLinks } from '../../ledger/links.ts';
import type { LedgerEntry } from '../../warehouse/sql.ts';
import type { App } from '../app.ts';
import { ensureEnrolment } from '../ensure-there.ts';
import { storeTold } from '../participants.ts';
import type { BadLine, PersonLine } from '../people-file.ts';
import { listInvitations, makeInvitation } from './invitations.ts';

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
  // All of them or none: of a link that is stored and was never printed nobody has the address.
  return changeAccounts(app.warehouse, async () => {
    const open = new Map(
      (await listInvitations(app)).flatMap(one => (one.state === 'open' ? [[one.user_id, `${one.expires_at?.slice(0, 16)}Z`]] : [])),
    );
    const links = await listLinks(app.warehouse, 'connect');
    const lines: InvitedLine[] = [];
    const entries: LedgerEntry[] = [];
    for (const { line, name } of people) {
      const { told, entries: own } = await inviteOne(app, name, { days, replace, until: open.get(name), links });
      lines.push({ line, user_id: name, ...told });
      for (const entry of own) entries.push(entry);
    }
    await app.warehouse.record(entries);
    return { people: lines, bad };
  });
}

interface Wanted {
  days: number;
  replace: boolean;
  /** When the link ends that the name has; undefined where it has none that can be used. */
  until: string | undefined;
  links: readonly Link[];
}

/** What is told of a line, and what makes its link one. */
interface Planned {
  told: Omit<InvitedLine, 'line' | 'user_id'>;
  entries: readonly LedgerEntry[];
}

const notInvited = (result: 'unchanged' | 'failed', reason: string): Planned => ({
  told: { result, url: null, expires_at: null, reason },
  entries: [],
});
const unchanged = (reason: string): Planned => notInvited('unchanged', reason);

async function inviteOne(app: App, name: string, { days, replace, until, links }: Wanted): Promise<Planned> {
  const another = `ringneck account invite ${name} makes another in its place`;
  if (until !== undefined && !replace) return unchanged(`has a link until ${until}; ${another}`);
  const account = await findAccount(app.warehouse, name);
  if (account && shownAccount(account, app.secrets).state === 'active') return unchanged('is read already');
  // A file is given again whenever somebody joins: who has left is not written to again by that.
  const left = await howLeft(app.warehouse, name);
  if (left && until !== undefined) return unchanged(`${left}, and has a link until ${until}, which stays; ${another}`);
  if (left) return unchanged(`${left}: ringneck account invite ${name} invites them all the same`);
  try {
    const { invited, entries } = await makeInvitation(app, { name, days, links });
    const { url, expires_at } = invited;
    return { told: { result: 'invited', url, expires_at, reason: null }, entries };
  } catch (error) {
    if (!(error instanceof RingneckError) || error instanceof TryLaterError) throw error;
    return notInvited('failed', shownMessageOf(error));
  }
}
