import type { Command } from 'commander';
import { withExample } from './options.ts';
import { perform } from './perform.ts';
import { printJson, printLine } from './print.ts';
import { openSession } from './session.ts';

export function addSnapshot(program: Command): void {
  withExample(
    program
      .command('snapshot')
      .description('publish a sorted copy of the warehouse, without tokens and internals, for readers')
      .option('--json', 'print {path, at}'),
    'ringneck snapshot',
  ).action(async (options: { json?: true }) => {
    const published = await perform(openSession(), 'snapshot', {});
    if (options.json) printJson(published);
    else printLine(published.path);
  });
}
