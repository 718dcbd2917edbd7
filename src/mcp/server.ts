import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { CallToolResult, ToolAnnotations } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { type Answer, Answers, type AnswersParts } from '../app/query/answers.ts';
import type { Most } from '../app/query/frames.ts';
import { kindOf, messageOf, RingneckError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { version } from '../base/version.ts';
import { readCookbook, readDictionary } from './pages.ts';
import { adviceFor, instructions, QUESTIONS } from './texts.ts';

export interface ServeOptions extends Omit<AnswersParts, 'limits'> {
  log: Log;
  limits?: AnswersParts['limits'];
}

/** Ends what is being asked, and the processes for it. */
export interface Served {
  close(): Promise<void>;
}

export const LIMITS: AnswersParts['limits'] = {
  memory: { text: '512MB', bytes: 512e6 },
  seconds: 30,
  more: {
    seconds: 'name fewer days or people, or take a view that has it counted already',
    memory: 'name fewer days or people, or count in several steps',
  },
};

/** An assistant reads all that it is given: what is more than this is to be counted by SQL. */
const MOST_BYTES = 64 * 1024;
const USUAL_ROWS = 200;
const MOST_ROWS = 2_000;
const USUAL: Most = { rows: USUAL_ROWS, bytes: MOST_BYTES };

const READS: ToolAnnotations = { readOnlyHint: true, idempotentHint: true, openWorldHint: false };

const day = z.iso.date().describe('A day, as 2025-01-31');
const name = z.string().min(1).max(1_000);

/** Serves what is stored to an assistant, read-only, over standard input and output unless told otherwise. */
export async function serve(
  { log, settings, user, limits = LIMITS }: ServeOptions,
  transport: Transport = new StdioServerTransport(),
): Promise<Served> {
  const answers = new Answers({ settings, user, limits });
  const closing = new AbortController();
  const server = new McpServer({ name: 'ringneck', title: 'Ringneck', version }, { instructions: instructions(user) });
  const tools = new Tools(server, answers, log, closing.signal);
  tools.addLists();
  tools.addQuery();
  tools.addOwnQuestions(user === undefined);
  addResources(server);
  addPrompts(server, user);
  await server.connect(transport);
  return {
    async close() {
      closing.abort(new RingneckError('the server is closing'));
      await server.close();
      await answers.close();
    },
  };
}

interface Extra {
  signal: AbortSignal;
}

/** They refuse arguments that they do not have: an answer that passes over a name or a day would be taken for one about it. */
class Tools {
  readonly #server: McpServer;
  readonly #answers: Answers;
  readonly #log: Log;
  readonly #closing: AbortSignal;

  constructor(server: McpServer, answers: Answers, log: Log, closing: AbortSignal) {
    this.#server = server;
    this.#answers = answers;
    this.#log = log;
    this.#closing = closing;
  }

  addLists(): void {
    this.#server.registerTool(
      'list_people',
      {
        title: 'Whose data is here',
        description: 'Everybody whose data is here, with the number of nights, the first and the newest.',
        inputSchema: z.strictObject({}),
        annotations: READS,
      },
      (_nothing, extra) =>
        this.#answer('list_people', extra, signal => this.#answers.ask('people', {}, { ...USUAL, rows: MOST_ROWS }, signal).then(one)),
    );
    this.#server.registerTool(
      'list_tables',
      {
        title: 'What can be asked',
        description: 'The views, macros and tables, with what each is for. Begin with the views.',
        inputSchema: z.strictObject({}),
        annotations: READS,
      },
      (_nothing, extra) =>
        this.#answer('list_tables', extra, async signal => {
          const { entries } = await this.#answers.catalogue(signal);
          return JSON.stringify(entries.map(({ name, kind, group, rows, meaning }) => ({ name, kind, group, rows, meaning })));
        }),
    );
    this.#server.registerTool(
      'describe_table',
      {
        title: 'One table',
        description: 'The columns of a view or table with type, unit and meaning, how it is joined, and a first query.',
        inputSchema: z.strictObject({ name: name.describe('As list_tables has it: nights, sync.coverage') }),
        annotations: READS,
      },
      ({ name: table }, extra) =>
        this.#answer('describe_table', extra, async signal => JSON.stringify(await this.#answers.describe(table, signal))),
    );
  }

  addQuery(): void {
    this.#server.registerTool(
      'query',
      {
        title: 'SQL',
        description: `Runs SQL of DuckDB, read-only, for at most ${LIMITS.seconds} s. The answer has at most ${USUAL_ROWS} rows unless limit says otherwise, and at most ${MOST_BYTES / 1024} kB; where it is cut it says so. Of several statements the last one's rows are given.`,
        inputSchema: z.strictObject({
          sql: z.string().min(1).max(100_000),
          limit: z.int().min(1).max(MOST_ROWS).optional().describe(`How many rows are given at most; ${USUAL_ROWS} without it`),
        }),
        annotations: READS,
      },
      ({ sql, limit }, extra) =>
        this.#answer('query', extra, signal => this.#answers.query(sql, { ...USUAL, rows: limit ?? USUAL_ROWS }, signal).then(one)),
    );
  }

  /** @param ofMany whether a question says whom it is about */
  addOwnQuestions(ofMany: boolean): void {
    const ofOne = z.strictObject({ day: day.optional() });
    const days = z.strictObject({
      collection: name.optional().describe('As sleep, daily_readiness, heart_rate; without it all'),
      from: day.optional(),
      to: day.optional(),
    });
    this.#server.registerTool(
      'night',
      {
        title: 'One night',
        description:
          'A night whole: times, stages, heart rate, variability; each value of the day against the median of the 28 days before; naps. Without a day the newest night.',
        inputSchema: ofMany ? ofOne.extend({ user: name.describe('user_id, as list_people has it') }) : ofOne,
        annotations: READS,
      },
      (about, extra) => this.#answer('night', extra, signal => this.#answers.ask('night', about, USUAL, signal).then(night)),
    );
    this.#server.registerTool(
      'coverage',
      {
        title: 'What is missing, and why',
        description:
          'Days in a row of which the same is known, for each person and collection: stored, empty at the service, not authorised, failed, pending, not asked, and why. Without days the 31 that end yesterday.',
        inputSchema: ofMany ? days.extend({ user: name.optional().describe('user_id; without it everybody') }) : days,
        annotations: READS,
      },
      (about, extra) =>
        this.#answer('coverage', extra, signal => {
          if (about.from && about.to && about.from > about.to)
            throw new RingneckError(`from ${about.from} is after to ${about.to}: exchange them`);
          return this.#answers.ask('coverage', about, { ...USUAL, rows: MOST_ROWS }, signal).then(answer => one(answer, UNKNOWN));
        }),
    );
  }

  /** What goes wrong is an answer too, which says what to do next. The log has no word of what was asked, nor of what came. */
  async #answer(tool: string, { signal }: Extra, work: (signal: AbortSignal) => Promise<string>): Promise<CallToolResult> {
    const start = performance.now();
    const log = (more: object) => this.#log.info({ tool, ms: Math.round(performance.now() - start), ...more }, 'asked');
    try {
      const text = await work(AbortSignal.any([signal, this.#closing]));
      log({ bytes: Buffer.byteLength(text) });
      return { content: [{ type: 'text', text }] };
    } catch (error) {
      log({ error: kindOf(error) });
      const message = messageOf(error);
      return { content: [{ type: 'text', text: `${message}${adviceFor(message)}` }], isError: true };
    }
  }
}

const CUT = 'There are more rows than these: count or group them in SQL, or name fewer days or people.';
const TOO_LARGE = `The first row alone is larger than ${MOST_BYTES / 1024} kB: name the columns that are needed, or take a part of a long text.`;

const UNKNOWN =
  'No rows: this does not say that nothing is missing. There is no such person, no such collection, one without days, or the days are not over. list_people has the names, sync.collections the collections.';

/** The rows of the last statement. @param note what is said where there is none */
function one({ at, results }: Answer, note?: string): string {
  const { columns = [], rows = [], cut = false } = results.at(-1) ?? {};
  const head = [`"data_of":${JSON.stringify(at)}`, `"columns":${JSON.stringify(columns)}`];
  const said = cut ? [`"cut":${JSON.stringify(rows.length ? `${CUT} Given: ${rows.length}.` : TOO_LARGE)}`] : [];
  if (note !== undefined && !rows.length && !cut) said.push(`"note":${JSON.stringify(note)}`);
  return `{${[...head, ...said, `"rows":[${rows.join(',\n')}]`].join(',')}}`;
}

/** The parts of the answer about a night, as objects: they are read one by one. */
function night({ at, results }: Answer): string {
  const [nights = [], usual = [], naps = [], coverage = []] = results.map(({ columns, rows }) =>
    rows.map(row => {
      const values: unknown[] = JSON.parse(row);
      return Object.fromEntries(columns.map((column, i) => [column.name, values[i]]));
    }),
  );
  const [night] = nights;
  const missing = night
    ? {}
    : {
        coverage,
        note: coverage.length
          ? 'There is no night of that day. coverage says what is known of it; the tool night without a day gives the newest.'
          : 'No night of this person is stored. list_people shows who is here; the tool coverage says what is missing, and why.',
      };
  return JSON.stringify({ data_of: at, night: night ?? null, against_the_28_days_before: usual, naps, ...missing });
}

function addResources(server: McpServer): void {
  const pages = [
    {
      name: 'data-dictionary',
      title: 'Data dictionary',
      description: 'Every table, view and column, with unit and meaning',
      read: readDictionary,
    },
    {
      name: 'cookbook',
      title: 'Cookbook',
      description: 'Questions of sleep, training and stress research, with SQL and answers',
      read: readCookbook,
    },
  ];
  for (const { name, title, description, read } of pages) {
    const uri = `ringneck://${name}`;
    server.registerResource(name, uri, { title, description, mimeType: 'text/markdown' }, async () => ({
      contents: [{ uri, mimeType: 'text/markdown', text: await read() }],
    }));
  }
}

function addPrompts(server: McpServer, user: string | undefined): void {
  const say = (text: string) => ({ messages: [{ role: 'user' as const, content: { type: 'text' as const, text } }] });
  for (const { name, title, description, ofPerson, text } of QUESTIONS) {
    if (user !== undefined && !ofPerson) continue;
    if (user !== undefined || !ofPerson) server.registerPrompt(name, { title, description }, () => say(text(JSON.stringify(user))));
    else {
      const argsSchema = { user: z.string().describe('user_id, as list_people has it') };
      server.registerPrompt(name, { title, description, argsSchema }, about => say(text(JSON.stringify(about.user))));
    }
  }
}
