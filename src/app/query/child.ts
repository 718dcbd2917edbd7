// The process of one query: it opens the file, answers, and is ended. Whatever the SQL does to it happens to nobody else.
import { rmdirSync } from 'node:fs';
import { Socket } from 'node:net';
import { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { Worker } from 'node:worker_threads';
import { messageOf, RingneckError } from '../../base/errors.ts';
import { printableJson } from '../../base/printable.ts';
import { openQueries, type QueryResult } from '../../warehouse/readers/query.ts';
import { stepBack } from '../step-back.ts';
import { type Frame, type Page, type QueryRequest, writeFrame } from './frames.ts';
import { formatPlan, isPlan } from './plan.ts';
import { writeBeginning } from './write-beginning.ts';
import { writeResult } from './write-result.ts';

/** How much more than DuckDB's limit the process may take: Node itself, and what DuckDB holds outside of its limit. */
const BESIDE_BYTES = 768 * 1024 * 1024;
/** For rows that are only counted. */
const COUNT_MS = 1_000;
const LONGEST_CELL = 2_000;

const out = new Socket({ fd: 3, readable: false });
out.on('error', () => undefined);
const send = (frame: Frame) => writeFrame(out, frame);

// The parent decides; a terminal's Ctrl-C reaches us too.
process.on('SIGINT', () => undefined);
const folder = process.cwd();
/** Nobody else does when whoever asked is gone. Only an empty one, as ours is: nothing is lost should this ever run in another. */
const removeFolder = () => {
  try {
    rmdirSync(folder);
  } catch {
    // It was removed, or holds something.
  }
};
process.on('disconnect', () => {
  removeFolder();
  die();
});
// Gone before we listened: then nothing keeps us.
process.on('exit', removeFolder);
process.once('message', ({ question, memoryBytes }: { question: QueryRequest; memoryBytes: number }) => {
  stepBack();
  process.send?.('begun');
  new Worker(new URL('./memory-watch.js', import.meta.url), { workerData: { mostBytes: memoryBytes + BESIDE_BYTES } });
  answer(question).then(
    () => send({ kind: 'done' }),
    error => send({ kind: 'error', error: { message: messageOf(error), exitCode: error instanceof RingneckError ? error.exitCode : 1 } }),
  );
});

/** Closes the file before it says that it is done. */
async function answer({ path, sql, memoryLimit, as }: QueryRequest): Promise<void> {
  const reader = await openQueries(path, { memoryLimit });
  try {
    if ('pageOf' in as) {
      for await (const result of reader.results(sql)) await send({ kind: 'page', page: await readPage(result, as.pageOf) });
    } else if ('upTo' in as) {
      for await (const result of reader.results(sql)) await sendRows(result, as.upTo);
    } else {
      const text = new Writable({
        write: (chunk: Buffer, _, done) => {
          send({ kind: 'text', text: chunk }).then(() => done(), done);
        },
      });
      const began = performance.now();
      const result = await reader.query(sql);
      if ('beginning' in as) await writeBeginning(result, as, began, text);
      else if (as.format === 'table' && isPlan(result.columns))
        text.write(`${formatPlan((await readPage(result, Number.POSITIVE_INFINITY)).rows)}\n`);
      else await writeResult(result, as.format, text);
      text.end();
      await finished(text);
    }
  } finally {
    reader.close();
  }
}

async function readPage({ columns, chunks, countRest }: QueryResult, wanted: number): Promise<Page> {
  const rows: Page['rows'] = [];
  const show = isPlan(columns) ? (text: string | null) => text : shorten;
  let over = 0;
  while (rows.length < wanted) {
    const next = await chunks.next();
    if (next.done) break;
    const taken = next.value.slice(0, wanted - rows.length);
    over = next.value.length - taken.length;
    for (const row of taken) rows.push(columns.map(({ text }, i) => show(text(row[i] ?? null))));
  }
  const rest = rows.length < wanted ? { rows: 0, ended: true } : await countRest(COUNT_MS);
  await chunks.return(undefined);
  return { columns: columns.map(({ name, numeric }) => ({ name, numeric })), rows, rest: { ...rest, rows: rest.rows + over } };
}

async function sendRows({ columns, chunks }: QueryResult, most: { rows: number; bytes: number }): Promise<void> {
  await send({ kind: 'columns', columns: columns.map(({ name, type, numeric }) => ({ name, type, numeric })) });
  let [count, bytes] = [0, 0];
  for await (const chunk of chunks) {
    const rows: string[] = [];
    for (const row of chunk) {
      const text = jsonOf(columns.map(({ json }, i) => json(row[i] ?? null)));
      count++;
      bytes += Buffer.byteLength(text);
      if (count > most.rows || bytes > most.bytes) {
        await send({ kind: 'rows', rows });
        return send({ kind: 'cut' });
      }
      rows.push(text);
    }
    await send({ kind: 'rows', rows });
  }
}

/** What is no number of JSON, as an infinity, becomes a text. */
function jsonOf(cells: readonly string[]): string {
  const written = (texts: readonly string[]) => printableJson(`[${texts.join(',')}]`);
  const whole = written(cells);
  return isJson(whole) ? whole : written(cells.map(cell => (isJson(cell) ? cell : JSON.stringify(cell))));
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const shorten = (text: string | null) => (text && text.length > LONGEST_CELL ? `${text.slice(0, LONGEST_CELL)}…` : text);

/** At once: a thread of DuckDB's may be anywhere. */
function die(): void {
  process.kill(process.pid, 'SIGKILL');
}
