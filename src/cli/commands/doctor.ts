import type { Command } from 'commander';
import type { Finding } from '../../app/doctor/finding.ts';
import { withExample } from '../options.ts';
import { printJson, printLine } from '../terminal/print.ts';

const LINGER_MS = 1_000;

export function addDoctor(program: Command): void {
  withExample(
    program
      .command('doctor')
      .description(
        'check settings, folder, owner, disk, clock, queue, service, accounts, days, callback, subscriptions, warehouse and snapshot, and say how to mend them',
      )
      .option('--json', 'print {state, findings}'),
    'ringneck doctor',
  ).action(async (options: { json?: true }) => {
    const { examineAll } = await import('../../app/doctor/examine-all.ts');
    const findings = await examineAll();
    const state = findings.some(finding => finding.state === 'fail')
      ? 'fail'
      : findings.some(finding => finding.state === 'warn')
        ? 'warn'
        : 'ok';
    if (options.json) printJson({ state, findings });
    else printFindings(findings);
    if (state === 'fail') process.exitCode = 1;
    // What gave no answer in time may never give one: it must not keep us.
    setTimeout(() => process.exit(), LINGER_MS).unref();
  });
}

function printFindings(findings: readonly Finding[]): void {
  const width = Math.max(...findings.map(({ check }) => check.length));
  for (const { check, state, message, mend } of findings) {
    printLine(`${state.padEnd(4)}  ${check.padEnd(width)}  ${message}`);
    if (mend) printLine(`      ${' '.repeat(width)}  → ${mend}`);
  }
}
