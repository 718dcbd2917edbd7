import type { Catalogue, CatalogueEntry } from '../../warehouse/readers/catalogue.ts';

/** A dot command that takes the name of an entry. */
const NAMING = /^\.describe\s+/;

const KEYWORDS = (
  'all and any as asc asof between by case cast count cross desc describe distinct else end except exists explain filter from full ' +
  'group having ilike in inner intersect interval is join lateral left like limit not null offset on or order outer over partition ' +
  'pivot positional qualify recursive right row rows sample select semi summarize table then union unpivot using values when where ' +
  'window with'
).split(' ');

/**
 * What the word before the cursor may become, and that word.
 * @param before the lines of the statement that are already there
 */
export function complete(catalogue: Catalogue, commands: readonly string[], before: string, line: string): [string[], string] {
  if (!before && /^\.\w*$/.test(line)) return [commands.filter(command => command.startsWith(line)), line];
  const [word] = /[A-Za-z_][\w.]*$/.exec(line) ?? [''];
  const text = `${before}\n${line.slice(0, line.length - word.length)}`;
  return [candidates(catalogue, text, word).filter(name => name !== word), word];
}

function candidates({ entries }: Catalogue, text: string, word: string): string[] {
  const relations = entries.filter(({ kind }) => kind === 'table' || kind === 'view');
  const macros = entries.filter(({ kind }) => kind === 'macro');
  const dot = word.lastIndexOf('.');
  const names = relations.map(({ name }) => name);
  const tableMacros = entries.filter(({ kind }) => kind === 'table macro').map(({ name }) => `${name}(`);
  const holder = dot > 0 ? word.slice(0, dot) : undefined;
  const columnsOfHolder = (holder && findRelation(relations, text, holder)?.columns.map(({ name }) => `${holder}.${name}`)) || [];
  if (NAMING.test(text.trimStart())) return startingWith(word, [...entries.map(({ name }) => name), ...columnsOfHolder]);
  if (holder) return startingWith(word, [...names, ...columnsOfHolder]);
  if (/\b(from|join|into|describe|summarize)\s+$/i.test(text)) return startingWith(word, [...names, ...tableMacros]);
  if (!word) return [];
  const columns = relations.flatMap(relation => relation.columns.map(({ name }) => name));
  const upper = word === word.toUpperCase();
  const functions = macros.map(({ name }) => `${name}(`);
  const written = KEYWORDS.map(keyword => (upper ? keyword.toUpperCase() : keyword));
  return startingWith(word, [...new Set([...columns, ...names, ...functions, ...tableMacros, ...written])].sort());
}

const startingWith = (word: string, names: readonly string[]) => names.filter(name => name.toLowerCase().startsWith(word.toLowerCase()));

/** The relation of this name, or the one that the statement gives this other name. */
function findRelation(relations: readonly CatalogueEntry[], text: string, name: string): CatalogueEntry | undefined {
  const direct = relations.find(relation => relation.name === name);
  if (direct) return direct;
  const alias = new RegExp(`\\b(?:from|join)\\s+([\\w.]+)\\s+(?:as\\s+)?${name.replace('.', '\\.')}\\b`, 'i').exec(text);
  return relations.find(relation => relation.name === alias?.[1]);
}
