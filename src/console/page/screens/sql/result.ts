import type { SqlLine } from '../../../api/sql.ts';

export interface Column {
  name: string;
  /** As DuckDB calls it: `BIGINT`, `VARCHAR[]`. */
  type: string;
  numeric: boolean;
}

export interface End {
  rows: number;
  /** By what it was cut; null: it is whole. */
  cut: 'rows' | 'bytes' | null;
  ms: number;
}

/** What has come of a result. */
export interface Result {
  columns: readonly Column[];
  /** By column, the texts of its values; null is NULL. */
  values: (string | null)[][];
  rows: number;
  /** Not there while more may come, and where an error ended it. */
  end?: End;
}

/** Adds a line of the answer to what has come. */
export function addLine(result: Result, line: SqlLine): void {
  if ('columns' in line) {
    result.columns = line.columns;
    result.values = line.columns.map(() => []);
  } else if ('batch' in line) {
    for (const [i, texts] of line.batch.entries()) for (const text of texts) result.values[i]?.push(text);
    result.rows += line.batch[0]?.length ?? 0;
  } else if ('end' in line) result.end = line.end;
}

/** The lines of an answer as they come. */
export async function* readLines(response: Response): AsyncGenerator<SqlLine> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    // What the server of this same version says.
    for (const line of lines) yield JSON.parse(line) as SqlLine;
  }
}

const count = (n: number) => n.toLocaleString('en');

/** `1 row`, `100,000 rows` */
export const rowsText = (rows: number) => `${count(rows)} ${rows === 1 ? 'row' : 'rows'}`;

/** What is missing of a result, where something is. */
export function cutText({ rows, cut }: End, { bytes }: { bytes: number }): string | undefined {
  if (!cut) return undefined;
  const by = cut === 'rows' ? 'more than are given' : `larger than ${Math.round(bytes / 2 ** 20)} MB`;
  return `Cut: the first ${rowsText(rows)} of a result that has ${cut === 'rows' ? 'more' : `more, and is ${by}`}.`;
}
