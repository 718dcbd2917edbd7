import type { Command } from 'commander';
import { interruptible } from '../../base/interrupt.ts';
import type { DemoOptions } from '../demo/run.ts';
import { parseDay, wholeNumber, withExample } from '../options.ts';

const DAYS = 365;

export function addDemo(program: Command): void {
  withExample(
    program
      .command('demo')
      .description('see it work: a service with generated people, a year of their data, questions in SQL, and a minute of live events')
      .option('--days <n>', 'how many days of their data', wholeNumber(1, 3_650), DAYS)
      .option('--to <day>', 'the last of those days (yesterday); the examples in docs/cookbook.md are of 2025-12-31', parseDay)
      .option('--keep', 'leave service and warehouse running at the end, until Ctrl-C')
      .option('--no-wait', 'do not wait for Enter before each question'),
    'ringneck demo',
  ).action(async (options: DemoOptions) => {
    const { runDemo } = await import('../demo/run.ts');
    await interruptible(signal => runDemo(options, signal));
  });
}
