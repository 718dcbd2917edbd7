import { existsSync } from 'node:fs';
import { type Command, Option } from 'commander';
import type { ConsoleGrant } from '../../app/app-options.ts';
import type { AppCommands } from '../../app/commands.ts';
import { RingneckError, UsageError } from '../../base/errors.ts';
import { interruptible } from '../../base/interrupt.ts';
import { warehouseIn } from '../../base/warehouse-file.ts';
import { withExample } from '../options.ts';
import { openSession, type Session } from '../session.ts';
import { note } from '../terminal/note.ts';
import { openBrowser } from '../terminal/open-browser.ts';
import { printLine } from '../terminal/print.ts';

interface Options {
  open: boolean;
  role?: ConsoleGrant['role'];
  user?: string;
}

export function addConsole(program: Command): void {
  withExample(
    program
      .command('console')
      .description('open the page to look at in the browser, by a link that works once, within a minute')
      .option('--no-open', 'print the link instead of opening it')
      .addOption(
        new Option('--role <role>', 'what may be done there: look and act, look, or look at one person').choices([
          'operator',
          'reader',
          'person',
        ]),
      )
      .option('--user <name>', 'the account that a person sees'),
    'ringneck console',
    'ringneck console --no-open',
    'ringneck console --role person --user ada',
  ).action(async ({ open, role = 'operator', user }: Options) => {
    if ((role === 'person') !== (user !== undefined)) throw new UsageError('--role person and --user NAME belong together');
    const session = await openSession();
    const grant = { role, person: user ?? null };
    const { connectControl } = await import('../../app/control/connect-control.ts');
    const owner = await connectControl<AppCommands>(session.settings.data);
    const link = await owner?.call('consoleLink', grant);
    if (link) return show(link.url, session, open);
    if (owner && session.settings.consolePort === null) {
      throw new RingneckError('`ringneck up` serves no console: RINGNECK_CONSOLE_PORT is off');
    }
    await serveReading(session, grant, open);
  });
}

/** Nobody serves one: this process does until it is ended, over the snapshot, where nothing can be done but look. */
async function serveReading(session: Session, grant: ConsoleGrant, open: boolean): Promise<void> {
  const [{ openConsole }, { listening }, { ensureOfThisWarehouse }] = await Promise.all([
    import('../../console/server/console.ts'),
    import('../../app/listen.ts'),
    import('../../app/find-source.ts'),
  ]);
  const { data, consoleHost: host, consolePort } = session.settings;
  if (!existsSync(data))
    throw new UsageError(`there is nothing to look at: ${data} (RINGNECK_DATA) does not exist. Begin with: ringneck init`);
  await ensureOfThisWarehouse(session.settings);
  await makeFirstSnapshot(session);
  const address = { host, port: consolePort ?? 0 };
  const served = await listening(address, 'RINGNECK_CONSOLE_PORT', openConsole({ ...session, now: Date.now }, address));
  try {
    const link = served.createLink(grant);
    note('ringneck up does not run: the page shows the snapshot, and nothing can be done there but look. Ctrl-C ends it.');
    await show(link, session, open);
    await interruptible(signal => new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true })));
  } finally {
    await served.close();
  }
}

/** Where what was read has no snapshot yet: without one the page would be empty. */
async function makeFirstSnapshot(session: Session): Promise<void> {
  const { data, snapshot } = session.settings;
  if (existsSync(snapshot) || !existsSync(warehouseIn(data))) return;
  note('there is no snapshot yet: the first one is made, which takes a while');
  const { call } = await import('../../app/call.ts');
  await interruptible(signal => call(session, 'snapshot', {}, { signal }));
}

async function show(url: string, { settings }: Session, open: boolean): Promise<void> {
  printLine(url);
  if (!open) return;
  await openBrowser(url, settings.data).catch(() => note('no browser could be opened: open the link yourself, within a minute'));
}
