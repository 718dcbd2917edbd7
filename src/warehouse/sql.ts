import type { Column } from './mapping.ts';

/** A value of a column: whole numbers as numbers, instants as microseconds, days as text. */
export type Value = string | number | boolean | null;

/** DuckDB text is UTF-8: a lone surrogate would be replaced; a NUL ends the text in tools written in C. */
export function storable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\u0000');
}

export const quoteText = (text: string) => `'${text.replaceAll("'", "''")}'`;

export const quoteName = (name: string) => `"${name.replaceAll('"', '""')}"`;

/** A column as people write it: without quotes, but where it is a word of DuckDB's own. */
export const bareName = (name: string) => (name === 'at' ? quoteName(name) : name);

export const qualified = (table: string) => table.split('.').map(quoteName).join('.');

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

export const textList = (values: Iterable<string>) => [...values].map(quoteText).join(', ');

/**
 * One row of the ledger, or of participants, replaced whole in the transaction of the data it speaks of. Without `row` the rows of the key are removed;
 * without `key` the row is added.
 */
export interface LedgerEntry {
  table: string;
  key?: Readonly<Record<string, Value>>;
  row?: Readonly<Record<string, Value>>;
}
