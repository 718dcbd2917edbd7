import type { Command } from 'commander';
import { call } from '../../app/call.ts';
import { interruptible } from '../../base/interrupt.ts';
import { withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { printJson, printLine } from '../terminal/print.ts';

export function addSnapshot(program: Command): void {
  withExample(
    program
      .command('snapshot')
      .description('publish a sorted copy of the warehouse, without tokens and internals, for readers')
      .option('--dated', 'also keep a dated copy with a manifest of its content, to cite')
      .option('--json', 'print {path, at}, of a dated one also its manifest and SHA-256'),
    'ringneck snapshot',
    'ringneck snapshot --dated',
  ).action(async ({ dated, json }: { dated?: true; json?: true }) => {
    const session = await openSession();
    const published = await interruptible(signal => call(session, dated ? 'datedSnapshot' : 'snapshot', {}, { signal }));
    if (json) printJson(published);
    else printLine(published.path);
  });
}
