import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';

/** How much of a result is given. */
export interface Most {
  rows: number;
  bytes: number;
}

/** By what a result was cut; null: it is whole. */
export type Cut = 'rows' | 'bytes' | null;

/**
 * What the process of a query is asked: of each result the first rows, as texts for a page or as JSON up to a size; of a format the last
 * result whole; of a `beginning` what the last result has up to a size: in `batches`, lines of JSON with the columns, then rows by column,
 * then how it ended, or for a `spreadsheet`, how it ended in a line of JSON, then CSV.
 */
export interface QueryRequest {
  path: string;
  sql: string;
  memoryLimit: string;
  as:
    | { format: 'table' | 'json' | 'csv' | 'ndjson' }
    | { pageOf: number }
    | { upTo: Most }
    | { beginning: 'batches' | 'spreadsheet'; most: Most };
}

/** The first rows of a result, as text. */
export interface Page {
  columns: { name: string; numeric: boolean }[];
  rows: (string | null)[][];
  /** How many rows there are besides, and whether they were counted to the end. */
  rest: { rows: number; ended: boolean };
}

/** What the process of a query answers, over a pipe of its own: DuckDB can be told to write to standard output. */
export type Frame =
  | { kind: 'text'; text: Uint8Array }
  | { kind: 'page'; page: Page }
  /** A result begins; its rows follow, each a JSON array, and, where there are more than were wanted, that it is cut. */
  | { kind: 'columns'; columns: { name: string; type: string; numeric: boolean }[] }
  | { kind: 'rows'; rows: string[] }
  | { kind: 'cut' }
  | { kind: 'error'; error: { message: string; exitCode: number } }
  | { kind: 'done' };

const KINDS = ['text', 'page', 'columns', 'rows', 'cut', 'error', 'done'] as const;
const HEAD = 5;
/** Of a longer text both sides would hold several copies at once. */
const LONGEST_TEXT = 4 * 1024 * 1024;

/** Writes frames, each after the other side has room for it. */
export async function writeFrame(out: Writable, frame: Frame): Promise<void> {
  if (frame.kind === 'text' && frame.text.length > LONGEST_TEXT) {
    for (let at = 0; at < frame.text.length; at += LONGEST_TEXT) {
      await writeFrame(out, { kind: 'text', text: frame.text.subarray(at, at + LONGEST_TEXT) });
    }
    return;
  }
  const body = frame.kind === 'text' ? frame.text : Buffer.from(JSON.stringify(frame));
  const head = Buffer.alloc(HEAD);
  head.writeUInt8(KINDS.indexOf(frame.kind));
  head.writeUInt32BE(body.length, 1);
  out.write(head);
  if (!out.write(body)) await once(out, 'drain');
}

/** Reads whole frames; what is left of one whose writer died is dropped. */
export async function* readFrames(input: Readable): AsyncGenerator<Frame> {
  let parts: Buffer[] = [];
  let size = 0;
  let wanted = HEAD;
  for await (const part of input as AsyncIterable<Buffer>) {
    parts.push(part);
    size += part.length;
    while (size >= wanted) {
      const all = Buffer.concat(parts);
      const end = HEAD + all.readUInt32BE(1);
      if (all.length < end) {
        parts = [all];
        wanted = end;
        break;
      }
      yield parseFrame(all[0]!, all.subarray(HEAD, end));
      parts = [all.subarray(end)];
      size = all.length - end;
      wanted = HEAD;
    }
  }
}

function parseFrame(kind: number, body: Buffer): Frame {
  return KINDS[kind] === 'text' ? { kind: 'text', text: body } : JSON.parse(body.toString());
}
