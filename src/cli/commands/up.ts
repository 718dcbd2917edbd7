import type { Command } from 'commander';
import type { UpOptions } from '../../app/up.ts';
import { interruptible } from '../../base/interrupt.ts';
import type { EventLine } from '../../sync/events/advance-event.ts';
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
    const onEvent = events && ((line: EventLine) => printLine(formatEvent(line)));
    // Loaded when it listens: most of a console nobody looks at is not needed.
    const openConsole: UpOptions['openConsole'] = async (parts, address) => {
      const served = await import('../../console/server/console.ts');
      return served.openConsole({ ...session, ...parts, now: Date.now }, address);
    };
    await interruptible(signal => runUp({ ...session, mirror, onEvent, openConsole }, signal));
  });
}
