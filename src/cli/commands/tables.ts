import type { Command } from 'commander';
import { withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { printJson, printLines } from '../terminal/print.ts';

export function addTables(program: Command): void {
  withExample(
    program
      .command('tables')
      .description('list the views, macros and tables of the warehouse, with what each is for')
      .option('--all', 'with the ledger, in schema sync')
      .option('--json', 'print an array of {name, kind, group, rows, meaning, paragraph}'),
    'ringneck tables',
  ).action(async ({ all, json }: { all?: true; json?: true }) => {
    const { formatCatalogue, openCatalogue } = await import('../terminal/catalogue.ts');
    const catalogue = await openCatalogue(await openSession());
    const ledger = all === true;
    if (json) {
      const shown = catalogue.entries.filter(({ group }) => ledger || group !== 'ledger');
      printJson(shown.map(({ name, kind, group, rows, meaning, paragraph }) => ({ name, kind, group, rows, meaning, paragraph })));
    } else printLines(formatCatalogue(catalogue, { ledger, width: terminalWidth() }));
  });
}

/** What fits beside no other text; undefined where nobody looks at it line by line. */
export function terminalWidth(): number | undefined {
  return process.stdout.isTTY ? Math.min(process.stdout.columns || 80, 120) : undefined;
}
