/** Whether a column holds why something is as it is: a sentence of ours, in which other accounts may be named. */
export const isReason = (table: string, column: string): boolean => table.startsWith('sync.') && column === 'reason';

/** A pattern of DuckDB for the reasons that name an account: in a command, or as the other one of the same person. What comes before is \\1, what follows \\2. */
export function reasonNaming(name: string): string {
  const escaped = name.replace(/[.]/g, '\\.');
  return `(ringneck account [a-z-]+ |of the same person as the account )${escaped}([^A-Za-z0-9._-]|$)`;
}
