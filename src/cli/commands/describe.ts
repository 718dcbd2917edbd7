import type { Command } from 'commander';
import { withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { printJson, printLines } from '../terminal/print.ts';
import { terminalWidth } from './tables.ts';

export function addDescribe(program: Command): void {
  withExample(
    program
      .command('describe <name>')
      .description('describe a view, macro or table: columns, types, units and a first query; or one column, such as sleep.average_hrv')
      .option('--sql', 'print only the statement that creates a view or macro')
      .option('--json', 'print all that is known as JSON'),
    'ringneck describe sleep',
  ).action(async (name: string, { sql = false, json }: { sql?: boolean; json?: true }) => {
    const [{ findEntry, formatEntry, joinsOf, openCatalogue }, { writeExample }] = await Promise.all([
      import('../terminal/catalogue.ts'),
      import('../../warehouse/readers/example.ts'),
    ]);
    const catalogue = await openCatalogue(await openSession());
    const entry = findEntry(catalogue, name);
    const { person } = catalogue;
    if (json) {
      const { isColumn, ...known } = entry;
      const example = isColumn ? undefined : writeExample(entry, person ?? undefined);
      printJson({ ...known, joins: joinsOf(entry), example: example ?? null });
    } else printLines(formatEntry(entry, { person, sql, width: terminalWidth() }));
  });
}
