import { once } from 'node:events';
import { PassThrough, type Readable } from 'node:stream';
import { readToAsk } from '../../app/catalogue/to-ask.ts';
import type { Frame, Most } from '../../app/query/frames.ts';
import { oneLine } from '../../app/query/one-line.ts';
import { type Limits, QueryProcess } from '../../app/query/query-process.ts';
import { messageOf, RingneckError, TryLaterError } from '../../base/errors.ts';
import type { ErrorAnswer, Streamed } from '../api/route.ts';
import type { Catalogue, sqlRoutes } from '../api/sql.ts';
import { ensureSnapshot } from './columns.ts';
import type { Asking, Handlers } from './handlers.ts';
import { kindOfStatus, Refusal } from './refusal.ts';

const MOST: Most = { rows: 100_000, bytes: 32 * 2 ** 20 };
const LIMITS: Limits = {
  memory: { text: '1GB', bytes: 2 ** 30 },
  seconds: 30,
  more: { memory: 'ringneck sql --memory allows more', seconds: 'ringneck sql --timeout allows more' },
};

interface Query {
  id: string;
  sql: string;
}

/** What is answered from SQL of the asker's own. */
export function createSqlHandlers(): Handlers<keyof typeof sqlRoutes> {
  const running = new Map<string, { id: string; cancel: AbortController }>();
  const catalogues = new Map<string, { stamp: string; catalogue: Promise<Catalogue> }>();

  /** Streams what the process writes, from when its first bytes are there: until then an error is an answer of its own. */
  async function stream({ id, sql }: Query, beginning: 'batches' | 'spreadsheet', asking: Asking): Promise<Readable> {
    const { session, questions, signal } = asking;
    ensureSnapshot(questions);
    if (running.has(session.id)) throw new Refusal(409, 'Another query of this session is still running.', 'Wait, or cancel it.');
    const cancel = new AbortController();
    running.set(session.id, { id, cancel });
    const out = new PassThrough();
    out.on('error', () => undefined);
    const ended = AbortSignal.any([signal, cancel.signal]);
    const take = async (frame: Frame) => {
      if (frame.kind === 'text' && !out.write(frame.text)) await once(out, 'drain', { signal: ended });
    };
    const asked = new QueryProcess(LIMITS)
      .ask({ path: questions.path, sql, as: { beginning, most: MOST } }, take, ended)
      .catch(error => {
        throw cancel.signal.aborted ? new Refusal(410, 'The query was cancelled.') : refusalOf(error);
      })
      .finally(() => running.delete(session.id));
    const begun = once(out, 'readable');
    asked.then(
      () => out.end(),
      error => (beginning === 'batches' ? out.end(`${JSON.stringify(errorOf(error))}\n`) : out.destroy()),
    );
    await Promise.race([asked, begun]);
    return out;
  }

  return {
    async 'GET catalogue'(_input, { questions }) {
      ensureSnapshot(questions);
      const { path, stamp = '' } = questions;
      const known = catalogues.get(path);
      if (known?.stamp === stamp) return known.catalogue;
      const catalogue = readCatalogue(path);
      catalogues.set(path, { stamp, catalogue });
      catalogue.catch(() => catalogues.delete(path));
      return catalogue;
    },
    'POST sql': async (query, asking): Promise<Streamed> => ({
      type: 'application/x-ndjson; charset=utf-8',
      body: await stream(query, 'batches', asking),
    }),
    async 'POST sql/export'(query, asking): Promise<Streamed> {
      const body = await stream(query, 'spreadsheet', asking);
      const { rows, cut }: { rows: number; cut: string | null } = JSON.parse(await readLine(body));
      const name = cut ? `result-first-${rows}-rows.csv` : 'result.csv';
      const headers = { 'Content-Disposition': `attachment; filename="${name}"`, 'X-Cut': cut ?? 'no' };
      return { type: 'text/csv; charset=utf-8', headers, body };
    },
    async 'DELETE sql/:id'({ id }, { session }) {
      const found = running.get(session.id);
      if (found?.id !== id) return { cancelled: false };
      found.cancel.abort();
      return { cancelled: true };
    },
  };
}

async function readCatalogue(path: string): Promise<Catalogue> {
  const { entries, questions, cookbook } = await readToAsk(path);
  return {
    entries: entries.map(({ name, kind, group, meaning, columns, calls, example }) => ({
      name,
      kind,
      group,
      meaning,
      columns: [...columns],
      calls: [...calls],
      example,
    })),
    questions: [...questions],
    cookbook: [...cookbook],
    limits: { ...MOST, seconds: LIMITS.seconds, memory: LIMITS.memory.text },
  };
}

/** Takes the first line away. */
async function readLine(from: Readable): Promise<string> {
  for (let line = ''; ; ) {
    const part: Buffer | null = from.read();
    if (!part) {
      if (from.destroyed) throw new Refusal(410, 'The query was cancelled.');
      await Promise.race([once(from, 'readable'), once(from, 'close')]);
      continue;
    }
    const end = part.indexOf('\n');
    line += part.subarray(0, end < 0 ? part.length : end).toString();
    if (end < 0) continue;
    from.unshift(part.subarray(end + 1));
    return line;
  }
}

/** What DuckDB has against a statement is for who wrote it, and neither a fault of ours nor for the log. */
function refusalOf(error: unknown): unknown {
  if (error instanceof TryLaterError || !(error instanceof RingneckError)) return error;
  return new Refusal(422, oneLine(error.message));
}

function errorOf(error: unknown): ErrorAnswer {
  if (error instanceof Refusal) return { error: { kind: kindOfStatus(error.status), message: error.message, help: error.help } };
  return { error: { kind: 'failed', message: messageOf(error), help: '' } };
}
