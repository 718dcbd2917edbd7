import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { call } from '../../app/call.ts';
import type { AppCommands } from '../../app/commands.ts';
import { connectControl } from '../../app/control/connect-control.ts';
import { TryLaterError, UsageError } from '../../base/errors.ts';
import type { RotateReport } from '../../base/secrets/rotate.ts';
import { isAccountName } from '../../ledger/accounts.ts';
import { withExample } from '../options.ts';
import { openSession, type Session } from '../session.ts';
import { askHidden } from '../terminal/ask.ts';
import { note } from '../terminal/note.ts';
import { formatCount, printJson, printLine } from '../terminal/print.ts';

const ABOUT = `
Where the key is in secret.key, a new one takes its place, also while \`ringneck up\` runs. Where it is RINGNECK_SECRET_KEY: end
\`ringneck up\`, set RINGNECK_SECRET_KEY to the new key, and give the former one to \`ringneck key rotate --former\`. With --former too
what a lost key had sealed is sealed again when that key is found. What the key does not open afterwards is named in \`unreadable\`, and it
ends with 1: what another key had sealed, or was damaged. Interrupted at any moment, the key that there is opens everything; run
it again to finish. Backups made before are opened by the key of before alone: keep it with them.`;

export function addKey(program: Command): void {
  const key = withExample(program.command('key').description('manage the key that seals tokens: rotate'), 'ringneck key rotate');
  withExample(
    key
      .command('rotate')
      .description('seal tokens, sign-ins and the sandbox’s client secret with another key; the former one opens nothing any more')
      .option('--former', 'read the former key from standard input')
      .option('--json', 'print {key, unreadable, finished}')
      .addHelpText('after', ABOUT),
    'ringneck key rotate',
    'printf %s "$FORMER_KEY" | ringneck key rotate --former',
  ).action(async (options: { former?: true; json?: true }) => {
    const session = await openSession();
    await ensureSameKey(session);
    const former = options.former ? await readFormer() : undefined;
    const report = await call(session, 'rotateKey', former === undefined ? {} : { former });
    if (options.json) printJson(report);
    else printLine(tell(report));
    for (const what of report.unreadable) note(`warning: ${warn(what, report.key)}`);
    if (report.unreadable.length) process.exitCode = 1;
  });
}

function tell({ key, unreadable, finished }: RotateReport): string {
  if (finished) return `finished: the key in ${key} alone opens what is sealed`;
  return `sealed with the key in ${key}${unreadable.length ? `, but for ${formatCount(unreadable.length)} that it does not open` : ''}`;
}

/** @param what the name of an account, or the file with the client secret of the sandbox */
function warn(what: string, key: string): string {
  const [closed, again] = isAccountName(what)
    ? [`what ${what} gave`, `ringneck account login ${what}, or add`]
    : [`the client secret in ${what}`, 'ringneck service --new-tokens makes a new one'];
  return `the key in ${key} does not open ${closed}: give the key of before by ringneck key rotate --former; where that is lost, or this is damaged: ${again}`;
}

/** Who runs already has the key that RINGNECK_SECRET_KEY held when it started. */
async function ensureSameKey({ settings }: Session): Promise<void> {
  if (settings.secretKey === undefined) return;
  const control = await connectControl<AppCommands>(settings.data);
  if (!control) return;
  throw new TryLaterError(
    `${settings.data} is owned by a running ringneck (PID ${control.pid}), which has the RINGNECK_SECRET_KEY that it was started with: end it, then try again`,
  );
}

async function readFormer(): Promise<string> {
  const former = process.stdin.isTTY ? await askHidden('Former key (not shown): ') : await text(process.stdin);
  if (!former.trim())
    throw new UsageError('no former key: standard input is empty: give it by printf %s "$FORMER_KEY" | ringneck key rotate --former');
  return former;
}
