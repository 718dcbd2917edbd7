import type { Command } from 'commander';
import { interruptible } from '../../base/interrupt.ts';
import { wholeNumber, withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { formatEvent } from '../terminal/event-line.ts';
import { printLine } from '../terminal/print.ts';

export function addUp(program: Command): void {
  withExample(
    program
      .command('up')
      .description('run until stopped: receive webhooks, sweep, run the nightly schedule; other commands connect to it')
      .option('--events', 'show each event as one line')
      .option('--mirror <port>', 'serve the warehouse by the service’s own interface', wholeNumber(0, 65_535)),
    'ringneck up',
    'ringneck up --events',
    'ringneck up --mirror 4001',
  ).action(async ({ mirror, events }: { mirror?: number; events?: true }) => {
    const session = await openSession();
    const { runUp } = await import('../../app/up.ts');
    await interruptible(signal => runUp({ ...session, mirror, onEvent: events && (line => printLine(formatEvent(line))) }, signal));
  });
}
