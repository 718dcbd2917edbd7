import { z } from 'zod';
import { route, streamed } from './route.ts';

const recipe = z.strictObject({ question: z.string(), sql: z.string() });

const entry = z.strictObject({
  /** As statements name it: `sleep`, `sync.windows`. */
  name: z.string(),
  kind: z.enum(['table', 'view', 'macro', 'table macro']),
  group: z.enum(['views', 'macros', 'documents', 'series', 'study', 'ledger', 'other']),
  meaning: z.string(),
  columns: z.array(z.strictObject({ name: z.string(), type: z.string(), unit: z.string().nullable(), meaning: z.string() })),
  /** How a macro is called: `local(ts, utc_offset)`. */
  calls: z.array(z.string()),
  /** A first query to run and to change. */
  example: z.string().nullable(),
});

const catalogue = z.strictObject({
  entries: z.array(entry),
  questions: z.array(recipe),
  cookbook: z.array(recipe),
  /** What one query may take. */
  limits: z.strictObject({ rows: z.number(), bytes: z.number(), seconds: z.number(), memory: z.string() }),
});

/** Chosen by who asks, by which the query can be cancelled. */
const id = z.string().regex(/^[\w-]{1,64}$/, 'up to 64 letters, digits, - and _');
const query = z.strictObject({ id, sql: z.string().min(1, 'a statement') });

/** What `POST sql` answers in lines of JSON: the columns, then rows by column as texts, then how it ended. */
export const sqlLine = z.union([
  z.strictObject({ columns: z.array(z.strictObject({ name: z.string(), type: z.string(), numeric: z.boolean() })) }),
  z.strictObject({ batch: z.array(z.array(z.string().nullable())) }),
  z.strictObject({ end: z.strictObject({ rows: z.number(), cut: z.enum(['rows', 'bytes']).nullable(), ms: z.number() }) }),
  z.strictObject({ error: z.strictObject({ kind: z.string(), message: z.string(), help: z.string() }) }),
]);
export type SqlLine = z.infer<typeof sqlLine>;
export type Catalogue = z.infer<typeof catalogue>;

/** Questions of one's own, answered by a process of their own: one at a time in a session. */
export const sqlRoutes = {
  'GET catalogue': route({
    summary: 'What there is to ask: tables, views and macros with their columns, and examples',
    role: 'person',
    input: z.strictObject({}),
    answer: catalogue,
    ofSnapshot: true,
  }),
  'POST sql': route({
    summary: 'Runs SQL; answers in lines of JSON as rows come',
    role: 'person',
    input: query,
    answer: streamed,
    streams: { type: 'application/x-ndjson', line: sqlLine },
  }),
  'POST sql/export': route({
    summary: 'Runs SQL; answers in CSV, in which a spreadsheet finds no formula',
    role: 'person',
    input: query,
    answer: streamed,
    streams: { type: 'text/csv' },
  }),
  'DELETE sql/:id': route({
    summary: 'Cancels the query of this session',
    role: 'person',
    input: z.strictObject({ id }),
    answer: z.strictObject({
      /** False: it was over already. */
      cancelled: z.boolean(),
    }),
  }),
};
