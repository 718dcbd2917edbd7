import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { csvField } from '../../base/csv.ts';
import { BYTE_ORDER_MARK, markName, markText, PLAIN } from '../../warehouse/readers/export/spreadsheet.ts';
import type { QueryResult } from '../../warehouse/readers/query.ts';
import type { Cut, Most } from './frames.ts';

type Texts = (string | null)[];

/** How a result ended: how many rows were given, and whether there are more. */
interface End {
  rows: number;
  cut: Cut;
}

/**
 * Writes the beginning of a result.
 * @param began when the query was asked, as `performance.now` says
 */
export async function writeBeginning(
  result: QueryResult,
  { beginning, most }: { beginning: 'batches' | 'spreadsheet'; most: Most },
  began: number,
  out: Writable,
): Promise<void> {
  const write = async (text: string) => {
    if (!out.write(text)) await once(out, 'drain');
  };
  const line = (value: unknown) => write(`${JSON.stringify(value)}\n`);
  const { columns } = result;
  if (beginning === 'batches') {
    await line({ columns: columns.map(({ name, type, numeric }) => ({ name, type, numeric })) });
    const end = await takeRows(result, most, rows => line({ batch: columns.map((_, i) => rows.map(row => row[i])) }));
    await line({ end: { ...end, ms: Math.round(performance.now() - began) } });
    return;
  }
  // Whoever stores it is to know that it was cut before its first byte.
  const parts: string[] = [];
  const isPlain = columns.map(({ type }) => PLAIN.test(type));
  const field = (text: string | null, i: number) => csvField(text === null || isPlain[i] ? text : markText(text));
  const end = await takeRows(result, most, async rows => void parts.push(rows.map(row => `${row.map(field).join(',')}\n`).join('')));
  await line(end);
  if (columns.length) await write(`${BYTE_ORDER_MARK}${columns.map(({ name }) => csvField(markName(name))).join(',')}\n`);
  for (const part of parts) await write(part);
}

/** Hands on rows as texts until there are enough, or no more. */
async function takeRows({ columns, chunks }: QueryResult, most: Most, take: (rows: Texts[]) => Promise<void>): Promise<End> {
  let given = 0;
  let bytes = 0;
  for await (const chunk of chunks) {
    const rows: Texts[] = [];
    let cut: Cut = null;
    for (const row of chunk) {
      const texts = columns.map(({ text }, i) => text(row[i] ?? null));
      bytes += texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? '') + 3, 0);
      if (given + rows.length === most.rows) cut = 'rows';
      else if (bytes > most.bytes) cut = 'bytes';
      if (cut) break;
      rows.push(texts);
    }
    given += rows.length;
    if (rows.length) await take(rows);
    if (cut) return { rows: given, cut };
  }
  return { rows: given, cut: null };
}
