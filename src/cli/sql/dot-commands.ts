import { didYouMean } from '../../base/did-you-mean.ts';
import { UsageError } from '../../base/errors.ts';
import { printable } from '../../base/printable.ts';
import type { Catalogue } from '../../warehouse/readers/catalogue.ts';

/** What a prompt remembers; nothing else outlives a statement. */
export interface ReplSettings {
  rows: number;
  timing: boolean;
}

export const COMMANDS = ['.help', '.tables', '.describe', '.rows', '.timing', '.exit'];
const MOST_ROWS = 100_000;

const HELP = `SQL that ends with ; is run, on as many lines as it needs. What is entered together runs together; nothing is kept for the next
statement: no temporary table, no BEGIN, no variable. The warehouse is open only while a statement runs, and cannot be changed.

.tables              the views, macros and tables
.describe NAME       one of them: its columns, and what they mean
.rows N              show N rows of a result, now MANNER_ROWS
.timing on|off       show how long it took
.exit                leave, as Ctrl-D does

Tab completes names. Ctrl-C stops a running query, or clears what is typed. Questions and answers: docs/cookbook.md`;

/**
 * The dot command that a line is. Some words without the dot are meant so too; in the middle of a statement only what no SQL is,
 * so that nobody is caught there.
 */
export function findDotCommand(line: string, isContinued: boolean): string | undefined {
  const typed = line.trim();
  if (!isContinued) return /^(help|exit|quit);?$/i.test(typed) ? `.${typed.toLowerCase()}` : typed.startsWith('.') ? typed : undefined;
  const [word = ''] = typed.replace(/;$/, '').split(/\s+/);
  return [...COMMANDS, '.quit'].includes(word) ? typed : undefined;
}

/** What a dot command says; undefined when it ends the prompt. */
export async function runDotCommand(
  line: string,
  replSettings: ReplSettings,
  readCatalogue: () => Promise<Catalogue>,
  width: number,
): Promise<string | undefined> {
  const [command = '', argument = '', ...more] = line.trim().replace(/;$/, '').split(/\s+/);
  if (more.length) throw new UsageError(`${command} takes one word: .help shows how`);
  switch (command) {
    case '.help':
      return HELP.replace('MANNER_ROWS', String(replSettings.rows));
    case '.tables': {
      const { formatCatalogue } = await import('../terminal/catalogue.ts');
      return formatCatalogue(await readCatalogue(), { ledger: true, width });
    }
    case '.describe': {
      if (!argument) throw new UsageError('.describe needs a name: .tables shows them');
      const { findEntry, formatEntry } = await import('../terminal/catalogue.ts');
      const catalogue = await readCatalogue();
      return formatEntry(findEntry(catalogue, argument), { person: catalogue.person, width });
    }
    case '.rows':
      if (!/^\d+$/.test(argument) || Number(argument) < 1 || Number(argument) > MOST_ROWS) {
        throw new UsageError(`.rows ${argument}: expected a whole number from 1 to ${MOST_ROWS}`);
      }
      replSettings.rows = Number(argument);
      return '';
    case '.timing':
      if (argument !== 'on' && argument !== 'off') throw new UsageError(`.timing ${argument}: expected on or off`);
      replSettings.timing = argument === 'on';
      return '';
    case '.exit':
    case '.quit':
      return undefined;
    default: {
      const nearest = didYouMean(command, COMMANDS);
      throw new UsageError(`${printable(command)} is no command${nearest ? `: did you mean ${nearest}?` : ''} (.help shows them)`);
    }
  }
}
