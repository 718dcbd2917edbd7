import type { Column } from './mapping.ts';
import type { Value } from './parse-document.ts';
import { qualified, quoteName, quoteText } from './tables.ts';

/** A value as SQL text. Deletes and look-ups use literals: DuckDB prunes row groups by them, not by a join or a subquery. */
export function literal(value: Value, type: Column['type']): string {
  if (value === null) return 'NULL';
  switch (type) {
    case 'TIMESTAMP':
      return `make_timestamp(${value as number}::BIGINT)`;
    case 'DATE':
      return `DATE ${quoteText(value as string)}`;
    case 'VARCHAR':
    case 'JSON':
      // A statement ends at a NUL; what is written here may come from the service.
      return quoteText((value as string).toWellFormed().replaceAll('\u0000', '\ufffd'));
    default:
      return String(value);
  }
}

/** DuckDB plans a longer chain of them ever more slowly. */
const MOST_CONDITIONS = 100;

export const textList = (values: Iterable<string>) => [...values].map(quoteText).join(', ');

/**
 * One row of the ledger, replaced whole in the transaction of the data it speaks of. Without `row` the rows of the key are removed;
 * without `key` the row is added.
 */
export interface LedgerEntry {
  table: string;
  key?: Readonly<Record<string, Value>>;
  row?: Readonly<Record<string, Value>>;
}

/** The statements that write ledger entries in their order, neighbours of one table together. */
export function ledgerStatements(entries: readonly LedgerEntry[], columnsOf: (table: string) => readonly Column[]): string[] {
  const statements: string[] = [];
  for (let i = 0; i < entries.length; ) {
    const { table } = entries[i]!;
    let end = i;
    while (end < entries.length && entries[end]!.table === table) end++;
    // Of two entries with one key the later one is meant.
    const latest = new Map<string | number, LedgerEntry>();
    for (let n = i; n < end; n++) {
      const { key } = entries[n]!;
      const name = key ? JSON.stringify(key) : n;
      latest.delete(name);
      latest.set(name, entries[n]!);
    }
    statements.push(...tableStatements(table, [...latest.values()], columnsOf(table)));
    i = end;
  }
  return statements;
}

function tableStatements(table: string, entries: readonly LedgerEntry[], columns: readonly Column[]): string[] {
  const typeOf = (name: string) => {
    const found = columns.find(column => column.name === name);
    if (!found) throw new Error(`${table} has no column ${name}`);
    return found.type;
  };
  const equals = (name: string, value: Value) => `${quoteName(name)} ${value === null ? 'IS NULL' : `= ${literal(value, typeOf(name))}`}`;
  // Keys that differ in their last part only leave by one statement: a page may bring thousands.
  const last = new Map<string, Set<string>>();
  for (const { key } of entries) {
    if (!key) continue;
    const parts = Object.entries(key);
    const [name, value] = parts.pop()!;
    const before = parts.map(part => equals(...part));
    const condition = value === null ? [...before, equals(name, value)].join(' AND ') : [...before, `${quoteName(name)} IN `].join(' AND ');
    const values = last.get(condition) ?? new Set();
    if (value !== null) values.add(literal(value, typeOf(name)));
    last.set(condition, values);
  }
  // Together, for a statement costs a millisecond or two whatever it does, and a run may end a hundred windows in one group.
  const conditions = [...last].map(([condition, values]) => `${condition}${values.size ? `(${[...values].join(', ')})` : ''}`);
  const statements: string[] = [];
  for (let i = 0; i < conditions.length; i += MOST_CONDITIONS) {
    const some = conditions.slice(i, i + MOST_CONDITIONS).map(condition => `(${condition})`);
    statements.push(`DELETE FROM ${qualified(table)} WHERE ${some.join(' OR ')}`);
  }
  const rows = entries.filter(({ row }) => row).map(({ key, row }) => ({ ...key, ...row }) as Record<string, Value>);
  for (const row of rows) for (const name of Object.keys(row)) typeOf(name);
  if (rows.length) {
    const names = columns.map(({ name }) => name);
    const values = rows.map(row => `(${columns.map(({ name, type }) => literal(row[name] ?? null, type)).join(', ')})`);
    statements.push(`INSERT INTO ${qualified(table)} (${names.map(quoteName).join(', ')}) VALUES ${values.join(', ')}`);
  }
  return statements;
}
