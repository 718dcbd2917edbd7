import type { Catalogue } from '../../../api/sql.ts';

export interface Option {
  label: string;
  type: 'table' | 'column' | 'function';
  /** Beside it: the unit, else the type. */
  detail: string;
  /** What it means. */
  info: string;
}

type Entry = Catalogue['entries'][number];

/**
 * What the word before a place may become.
 * @returns also where that word begins; null: nothing of the catalogue
 */
export function optionsAt(entries: readonly Entry[], text: string, at: number): { from: number; options: Option[] } | null {
  const before = text.slice(0, at);
  const [word] = /[A-Za-z_][\w.]*$/.exec(before) ?? [''];
  const start = at - word.length;
  const relations = entries.filter(({ kind }) => kind === 'table' || kind === 'view');
  const dot = word.lastIndexOf('.');
  if (dot > 0) {
    const holder = findRelation(relations, text, word.slice(0, dot));
    if (holder) return { from: start + dot + 1, options: holder.columns.map(optionOfColumn) };
    return { from: start, options: relations.map(optionOfEntry) };
  }
  const tables = [...relations, ...entries.filter(({ kind }) => kind === 'table macro')].map(optionOfEntry);
  if (/\b(from|join|describe|summarize)\s+$/i.test(before.slice(0, start))) return { from: start, options: tables };
  if (!word) return null;
  const named = relations.filter(({ name }) => new RegExp(`\\b${name.replace('.', '\\.')}\\b`, 'i').test(text));
  const columns = new Map((named.length ? named : relations).flatMap(({ columns }) => columns.map(column => [column.name, column])));
  const macros = entries.filter(({ kind }) => kind === 'macro').map(optionOfEntry);
  return { from: start, options: [...[...columns.values()].map(optionOfColumn), ...macros, ...tables] };
}

const optionOfColumn = ({ name, type, unit, meaning }: Entry['columns'][number]): Option => ({
  label: name,
  type: 'column',
  detail: unit ?? type,
  info: meaning,
});

const optionOfEntry = ({ name, kind, meaning }: Entry): Option => ({
  label: kind.endsWith('macro') ? `${name}(` : name,
  type: kind.endsWith('macro') ? 'function' : 'table',
  detail: kind,
  info: meaning,
});

/** The relation of this name, or the one that the statement gives this other name. */
function findRelation(relations: readonly Entry[], text: string, name: string): Entry | undefined {
  const direct = relations.find(relation => relation.name === name);
  if (direct) return direct;
  const alias = new RegExp(`\\b(?:from|join)\\s+([\\w.]+)\\s+(?:as\\s+)?${name.replaceAll('.', '\\.')}\\b`, 'i').exec(text);
  return relations.find(relation => relation.name === alias?.[1]);
}
