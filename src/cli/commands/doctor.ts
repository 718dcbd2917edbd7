import type { Command } from 'commander';
import type { CheckResult } from '../../app/doctor/check-result.ts';
import { withExample } from '../options.ts';
import { printJson, printLine } from '../terminal/print.ts';

export function addDoctor(program: Command): void {
  withExample(
    program
      .command('doctor')
      .description(
        'check settings, folder, owner, disk, clock, queue, service, accounts, days, callback, subscriptions, warehouse and snapshot, and say how to fix them',
      )
      .option('--json', 'print {state, results}'),
    'ringneck doctor',
  ).action(async (options: { json?: true }) => {
    const { checkAll } = await import('../../app/doctor/check-all.ts');
    const results = await checkAll();
    const state = results.some(result => result.state === 'fail')
      ? 'fail'
      : results.some(result => result.state === 'warn')
        ? 'warn'
        : 'ok';
    if (options.json) printJson({ state, results });
    else printResults(results);
    if (state === 'fail') process.exitCode = 1;
  });
}

function printResults(results: readonly CheckResult[]): void {
  const width = Math.max(...results.map(({ check }) => check.length));
  for (const { check, state, message, fix } of results) {
    printLine(`${state.padEnd(4)}  ${check.padEnd(width)}  ${message}`);
    if (fix) printLine(`      ${' '.repeat(width)}  → ${fix}`);
  }
}
