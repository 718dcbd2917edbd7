import { once } from 'node:events';
import type { Command } from 'commander';
import { interruptible } from '../../base/interrupt.ts';
import { parseAccountName } from '../../ledger/accounts.ts';
import { withExample } from '../options.ts';
import { openSession } from '../session.ts';

const MORE = `
An assistant starts it and speaks to it over standard input and output: docs/assistants.md has the lines of configuration. It reads the
warehouse, or the snapshot while \`ringneck up\` runs, as \`ringneck sql\` does, and can change nothing. What it answers goes to the assistant,
and so to whoever runs that. With --user it reads a file in which there is nothing of anybody else.`;

export function addMcp(program: Command): void {
  withExample(
    program
      .command('mcp')
      .description('answer an assistant over the Model Context Protocol (stdio), read-only')
      .option('--user <name>', 'show the assistant this person alone')
      .addHelpText('after', MORE),
    'ringneck mcp',
    'ringneck mcp --user ada',
  ).action(async ({ user }: { user?: string }) => {
    if (user !== undefined) parseAccountName(user);
    const { settings, log } = await openSession();
    const { serve } = await import('../../mcp/server.ts');
    await interruptible(async signal => {
      const served = await serve({ settings, log, user });
      // Who started it is gone, closes its input, or ends it.
      await Promise.race([once(process.stdin, 'close'), once(process.stdin, 'end'), once(process.stdout, 'error'), once(signal, 'abort')]);
      await served.close();
    });
  });
}
