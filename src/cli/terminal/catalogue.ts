import stringWidth from 'string-width';
import { resources } from '../../../schema/index.ts';
import { findNamed, spellName } from '../../app/catalogue/find-named.ts';
import { findSource, hasOwnerSince } from '../../app/find-source.ts';
import { didYouMean } from '../../base/did-you-mean.ts';
import { UsageError } from '../../base/errors.ts';
import { listShort } from '../../base/items.ts';
import { printableLines } from '../../base/printable.ts';
import {
  type Catalogue,
  type CatalogueColumn,
  type CatalogueEntry,
  declareCatalogue,
  GROUPS,
  type Group,
  readCatalogue,
} from '../../warehouse/readers/catalogue.ts';
import { writeExample } from '../../warehouse/readers/example.ts';
import { type Join, listJoins } from '../../warehouse/readers/joins.ts';
import type { Session } from '../session.ts';
import { note, noteStale } from './note.ts';
import { formatCount, formatTable } from './print.ts';

export const TITLES: Readonly<Record<Group, string>> = {
  views: 'Views, for questions',
  macros: 'Macros',
  documents: 'Documents, one row each',
  series: 'Series, one row for each sample, object or measurement',
  study: 'Study, one row for each participant',
  ledger: 'Ledger: what was read, and what became of it',
  other: 'Not made by Ringneck',
};

/** The catalogue of the warehouse, or, when there is none yet, of what it will hold. */
export async function openCatalogue(session: Session): Promise<Catalogue> {
  const source = await findSource(session.settings);
  if (!source) {
    note(`there is no warehouse in ${session.settings.data} yet: this is what it will hold`);
    return declareCatalogue(resources);
  }
  noteStale(source);
  try {
    return await readCatalogue(source.path, resources);
  } catch (error) {
    if (await hasOwnerSince(error, source, session.settings)) return openCatalogue(session);
    throw error;
  }
}

/** The tables in groups, as wide as `width`; without one a line for each, for other programs. */
export function formatCatalogue(
  { entries }: Catalogue,
  { ledger = false, width }: { ledger?: boolean; width?: number | undefined } = {},
): string {
  const shown = entries.filter(({ group }) => ledger || group !== 'ledger');
  const count = ({ rows }: CatalogueEntry) => (rows === null ? '' : formatCount(rows));
  if (width === undefined) {
    const lines = shown.map(entry => [entry.name, entry.kind, entry.group, entry.rows, shorten(entry.meaning)]);
    return printableLines(formatTable(['name', 'kind', 'group', 'rows', 'what it is'], lines));
  }
  const nameWidth = Math.max(...shown.map(({ name }) => stringWidth(name)));
  const countWidth = Math.max(...shown.map(entry => count(entry).length));
  const left = 2 + nameWidth + 2 + (countWidth ? countWidth + 2 : 0);
  const groups = GROUPS.map(group => ({ group, members: shown.filter(entry => entry.group === group) }))
    .filter(({ members }) => members.length)
    .map(({ group, members }) => {
      const lines = members.flatMap(entry => {
        const head = `  ${entry.name.padEnd(nameWidth)}  ${countWidth ? `${count(entry).padStart(countWidth)}  ` : ''}`;
        return hang(head, left, shorten(entry.meaning), width);
      });
      return [TITLES[group], ...lines].join('\n');
    });
  return printableLines(groups.join('\n\n'));
}

/** Of a meaning the first clause: `describe` has the whole. */
const shorten = (meaning: string) =>
  meaning
    .replace(/\s+/g, ' ')
    .replace(/(: |\. (?=\p{Lu})).*$/su, '')
    .replace(/\.$/, '');

/** What there is to describe. */
export type Described = CatalogueEntry & {
  /** Whether only one of its columns was named: then it has no other. */
  isColumn?: true;
};

/**
 * The entry of this name, whatever its capitals; `coverage` finds `sync.coverage`, and `sleep.average_hrv` that column of `sleep`.
 * @throws UsageError with what was probably meant
 */
export function findEntry({ entries }: Catalogue, name: string): Described {
  const found = findNamed(entries, name);
  if (found) return found;
  const wanted = spellName(name);
  const dot = wanted.lastIndexOf('.');
  const table = dot > 0 ? findNamed(entries, wanted.slice(0, dot)) : undefined;
  if (table?.columns.length) return { ...table, columns: [findColumn(table, wanted.slice(dot + 1))], isColumn: true };
  const holders = entries.filter(({ columns }) => columns.some(column => column.name.toLowerCase() === wanted)).map(entry => entry.name);
  if (holders.length) {
    throw new UsageError(`${name} is a column of ${listShort(holders, 6)}: ringneck describe ${holders[0]}`);
  }
  const nearest = didYouMean(
    wanted,
    entries.map(entry => entry.name),
  );
  const advice = nearest ? `did you mean ${nearest}?` : '`ringneck tables` lists them';
  throw new UsageError(`there is no table, view or macro ${JSON.stringify(name)}: ${advice}`);
}

function findColumn({ name, columns }: CatalogueEntry, wanted: string): CatalogueColumn {
  const found = columns.find(column => column.name.toLowerCase() === wanted);
  if (found) return found;
  const nearest = didYouMean(
    wanted,
    columns.map(column => column.name),
  );
  const advice = nearest ? `did you mean ${name}.${nearest}?` : `ringneck describe ${name} lists them`;
  throw new UsageError(`${name} has no column ${JSON.stringify(wanted)}: ${advice}`);
}

/** The joins of one table. */
export const joinsOf = ({ name }: CatalogueEntry): Join[] => listJoins(resources).filter(({ from, to }) => from === name || to === name);

/** What there is to know of one table, view or macro, or of one column, as wide as `width`; without one a line for each column, for other programs. */
export function formatEntry(
  entry: Described,
  { person, width, sql = false }: { person?: string | null; width?: number | undefined; sql?: boolean } = {},
): string {
  const { name, kind, rows, meaning, paragraph, columns, calls, reads, isColumn } = entry;
  if (sql) return printableLines(entry.sql ?? `-- ${name} is a table: schema/warehouse.sql makes it`);
  const head = `${calls.join(', ') || name}: ${kind}${rows === null ? '' : `, ${formatCount(rows)} rows`}`;
  const about = [head, ...wrap(meaning, width)];
  if (paragraph) about.push(`Specification: ${paragraph}`);
  if (isColumn) return printableLines([about.join('\n'), formatColumns(entry, width)].join('\n\n'));
  const example = writeExample(entry, person ?? undefined);
  const parts = [
    about.join('\n'),
    columns.length ? formatColumns(entry, width) : '',
    reads.length ? wrap(`Reads ${reads.join(', ')}. Its SQL: ringneck describe ${name} --sql`, width).join('\n') : '',
    joinsOf(entry)
      .map(({ from, to, on, meaning, back }) => (to === name ? `JOIN ${from} ${on}\n  ${back}` : `JOIN ${to} ${on}\n  ${meaning}`))
      .join('\n'),
    example
      ? `Try:\n${wrap(example, width === undefined ? undefined : width - 2)
          .map(line => `  ${line}`)
          .join('\n')}`
      : '',
  ];
  return printableLines(parts.filter(Boolean).join('\n\n'));
}

const NAME_WIDTH = 28;

/** Names that are wider than their column stand on a line of their own. */
function formatColumns({ columns }: CatalogueEntry, width: number | undefined): string {
  if (width === undefined) {
    const lines = columns.map(({ name, type, unit, meaning }) => [name, type, unit, meaning]);
    return formatTable(['column', 'type', 'unit', 'meaning'], lines);
  }
  const nameWidth = Math.min(NAME_WIDTH, Math.max(...columns.map(({ name }) => name.length)));
  const typeWidth = Math.max(...columns.map(({ type }) => type.length));
  const left = 2 + nameWidth + 2 + typeWidth + 2;
  const lines = columns.flatMap(({ name, type, unit, meaning }) => {
    const long = name.length > nameWidth;
    const head = `  ${(long ? '' : name).padEnd(nameWidth)}  ${type.padEnd(typeWidth)}  `;
    return [...(long ? [`  ${name}`] : []), ...hang(head, left, unit ? `${meaning} [${unit}]` : meaning, width)];
  });
  return lines.join('\n');
}

/** Text beside a head, its further lines below its first. */
function hang(head: string, left: number, text: string, width: number): string[] {
  const [first = '', ...more] = wrap(text, Math.max(20, width - left));
  return [`${head}${first}`.trimEnd(), ...more.map(line => ' '.repeat(left) + line)];
}

/** Lines of at most this width, broken between words. */
function wrap(text: string, width = Number.POSITIVE_INFINITY): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last !== undefined && stringWidth(last) + 1 + stringWidth(word) <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
