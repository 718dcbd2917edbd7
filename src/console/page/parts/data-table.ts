export type Cell = string | number | null;

/** The numbers of a chart, by columns of the same length; a name says its unit. */
export type DataTable = readonly { readonly name: string; readonly values: readonly Cell[] }[];

export const rowCountOf = (table: DataTable) => table[0]?.values.length ?? 0;

/** RFC 4180; what is missing is an empty field. */
export function csvOf(table: DataTable): string {
  const lines = [table.map(({ name }) => field(name)).join(',')];
  for (let row = 0; row < rowCountOf(table); row++) lines.push(table.map(({ values }) => field(values[row] ?? null)).join(','));
  return `${lines.join('\r\n')}\r\n`;
}

function field(cell: Cell): string {
  if (cell === null) return '';
  const text = typeof cell === 'string' ? harmless(cell) : String(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A spreadsheet computes what begins like a formula, unless a ' stands before it. */
const harmless = (text: string) => (/^[=+\-@\t\r\n＝＋－＠']/.test(text) ? `'${text}` : text);
