import type { App } from '../app.ts';
import type { MoveReport, Renaming } from './move.ts';

/** What the owner of a data folder does to give an account another name. */
export const moveCommands = { moveAccount };

/** Gives an account, with all that is kept of it, another name, with everything else at rest meanwhile. */
async function moveAccount(app: App, { from, to }: Renaming): Promise<MoveReport> {
  const { settings, log, now } = app;
  const move = await import('./move.ts');
  await move.ensureMovable(app, { from, to });
  return app.withExclusive(() => move.moveAccount({ settings, log, now }, { from, to }), 'moved in');
}
