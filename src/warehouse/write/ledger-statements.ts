import type { Column } from '../mapping.ts';
import { type LedgerEntry, literal, qualified, quoteName, type Value } from '../sql.ts';

type Key = Readonly<Record<string, Value>>;

/** The statements that write ledger entries in their order, neighbours of one table together. */
export function ledgerStatements(entries: readonly LedgerEntry[], columnsOf: (table: string) => readonly Column[]): string[] {
  const statements: string[] = [];
  for (let i = 0; i < entries.length; ) {
    const { table } = entries[i]!;
    // Of two entries with one key the later one is meant.
    const latest = new Map<string | number, LedgerEntry>();
    for (let entry = entries[i]; entry?.table === table; entry = entries[++i]) {
      const name = entry.key ? JSON.stringify(entry.key) : i;
      latest.delete(name);
      latest.set(name, entry);
    }
    statements.push(...tableStatements(table, [...latest.values()], columnsOf(table)));
  }
  return statements;
}

function tableStatements(table: string, entries: readonly LedgerEntry[], columns: readonly Column[]): string[] {
  const typeOf = (name: string) => {
    const found = columns.find(column => column.name === name);
    if (!found) throw new Error(`${table} has no column ${name}`);
    return found.type;
  };
  const keys = entries.flatMap(({ key }) => (key ? [key] : []));
  const statements = matchKeys(keys, (name, value) => literal(value, typeOf(name))).map(
    ({ list, condition }) => `DELETE FROM ${qualified(table)} ${list ? `USING ${list}` : ''} WHERE ${condition}`,
  );
  const rows = entries.flatMap(({ key, row }): Key[] => (row ? [{ ...key, ...row }] : []));
  for (const row of rows) for (const name of Object.keys(row)) typeOf(name);
  if (rows.length) {
    // Of a plan most columns are null, and every value costs time to parse while others wait.
    const given = columns.filter(({ name }) => rows.some(row => (row[name] ?? null) !== null));
    const values = rows.map(row => `(${given.map(({ name, type }) => literal(row[name] ?? null, type)).join(', ')})`);
    statements.push(`INSERT INTO ${qualified(table)} (${given.map(({ name }) => quoteName(name)).join(', ')}) VALUES ${values.join(', ')}`);
  }
  return statements;
}

/**
 * The rows of keys, one condition for all of the same columns: a statement costs a millisecond or two whatever it does, and a run may end a
 * hundred windows in one group. Never a chain of OR: DuckDB makes a join of each list of values in it, which take 2 MB each, all at once.
 * @returns what is joined, and on what; without a list all keys are one
 */
export function matchKeys(
  keys: readonly Key[],
  literalOf: (column: string, value: Value) => string,
): { list: string | undefined; condition: string }[] {
  const alike = new Map<string, [Key, ...Key[]]>();
  for (const key of keys) {
    const names = Object.keys(key).join('\n');
    const some = alike.get(names);
    if (some) some.push(key);
    else alike.set(names, [key]);
  }
  return [...alike.values()].map(some => {
    const [first] = some;
    const literalAt = (key: Key, name: string) => literalOf(name, key[name] ?? null);
    const varying = Object.keys(first).filter(name => some.some(key => key[name] !== first[name]));
    const conditions = Object.keys(first).map(name => {
      const equals = some.some(key => key[name] === null) ? 'IS NOT DISTINCT FROM' : '=';
      return `${quoteName(name)} ${equals} ${varying.includes(name) ? `wanted.k${varying.indexOf(name)}` : literalAt(first, name)}`;
    });
    const values = some.map(key => `(${varying.map(name => literalAt(key, name)).join(', ')})`);
    return {
      list: varying.length ? `(VALUES ${values.join(', ')}) wanted (${varying.map((_, i) => `k${i}`).join(', ')})` : undefined,
      condition: conditions.join(' AND '),
    };
  });
}
