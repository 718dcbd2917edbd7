import type { Command } from 'commander';
import { call } from '../../app/call.ts';
import { withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { printJson, printLine } from '../terminal/print.ts';

export function addWhy(program: Command): void {
  withExample(
    program
      .command('why <name>')
      .description('say in a few sentences why an account is behind, or what of it is missing')
      .option('--json', 'print {user_id, sentences}'),
    'ringneck why ada',
  ).action(async (name: string, { json }: { json?: true }) => {
    const report = await call(await openSession(), 'why', { name });
    if (json) printJson(report);
    else for (const sentence of report.sentences) printLine(sentence);
  });
}
