import type { Command } from 'commander';
import { findMachines } from '../../app/lake/machines.ts';
import { withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { note } from '../terminal/note.ts';
import { formatTable, printJson, printLines } from '../terminal/print.ts';

export function addMachines(program: Command): void {
  withExample(
    program
      .command('machines')
      .description('show on which machines `ringneck up` runs with this lake: which one works, which wait, and their versions')
      .option('--json', 'print a list of {host, folder, version, since, seen_seconds_ago, queue_seconds_ago, state}'),
    'ringneck machines',
  ).action(async ({ json }: { json?: true }) => {
    const machines = await findMachines(await openSession());
    if (json) return printJson(machines);
    if (!machines.length) return note('no ringneck up runs with this lake');
    const ago = (seconds: number | null) => (seconds === null ? '–' : `${seconds} s ago`);
    const rows = machines.map(({ state, host, folder, version, since, seen_seconds_ago: seen, queue_seconds_ago: queue }) => [
      ...[state, host, folder, version, since],
      ...[ago(seen), ago(queue)],
    ]);
    printLines(formatTable(['state', 'host', 'folder', 'version', 'since', 'seen', 'Redis answered'], rows));
  });
}
