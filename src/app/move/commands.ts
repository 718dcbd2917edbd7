import { messageOf, RingneckError, UsageError } from '../../base/errors.ts';
import type { MirrorTokens } from '../../base/secrets/mirror-tokens.ts';
import { parseAccountName } from '../../ledger/accounts.ts';
import type { App } from '../app.ts';
import { ensureQueueAnswers, ensureRoom } from '../rewriting.ts';
import { inTurn } from '../take-back.ts';
import { ensureFree, ensureNamed } from './ensure-free.ts';
import type { MoveReport, Renaming } from './move.ts';

/** What the owner of a data folder does to give an account another name. */
export const moveCommands = { moveAccount };

/** Gives an account, with all that is kept of it, another name, with everything else at rest meanwhile. */
async function moveAccount(app: App, { from, to }: Renaming): Promise<MoveReport> {
  const { settings, log, now, onFailure } = app;
  await ensureMovable(app, { from, to });
  const move = await import('./move.ts');
  // What is being taken back may bring a pair to be kept by the name.
  const work = async () => {
    const report = await move.moveAccount({ settings, log, now }, { from, to });
    onFailure.rename(from, to);
    return report;
  };
  return inTurn(app.warehouse, from, () => app.withExclusive(work, 'moved in'));
}

/**
 * Whether an account can get another name now.
 * @throws UsageError where there is no such account, or the other name is in use; RingneckError where it cannot be done now
 */
async function ensureMovable(app: App, { from, to }: Renaming): Promise<void> {
  const { settings, warehouse, secrets, mirrorTokens } = app;
  for (const name of [from, to]) parseAccountName(name);
  if (from === to) throw new UsageError(`${from} has that name already`);
  await ensureNamed(warehouse, from);
  await ensureFree({ warehouse, secrets, mirrorTokens }, to);
  if (secrets.namesElsewhere().includes(from)) throw new UsageError(`${from} keeps its name: ${secrets.whyMissing(from)}`);
  secrets.listOfAny(from);
  ensureWritable(mirrorTokens, from);
  ensureRoom(warehouse.path);
  await ensureQueueAnswers(settings);
  await app.ensureSignInsWritten();
}

/** Where the rows have moved a token for the mirror that could not follow would hold up everything. */
function ensureWritable(mirrorTokens: MirrorTokens, from: string): void {
  try {
    mirrorTokens.rename(from, from);
  } catch (error) {
    throw new RingneckError(`${from} keeps its name, for its token for the mirror could not follow: ${messageOf(error)}`, 1, {
      cause: error,
    });
  }
}
