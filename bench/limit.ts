import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { Pool } from 'undici';
import { defineTask, wholeCost, withCost } from './task.ts';

/** What somebody would write who loads the answers with DuckDB's own means: into the same tables, each by one statement. */
export interface LimitSql {
  create: string[];
  load: string[];
}

/** A range of a collection of an account, page by page. */
export interface Asked {
  user: string;
  /** Number of the account: its token. */
  account: number;
  collection: string;
  path: string;
  query: Record<string, string>;
}

/** One connection pool, as many connections as there are chains of pages. */
export function openPages(url: string, connections: number) {
  const pool = new Pool(url, { connections, pipelining: 1 });
  return {
    /** The answers of a collection, one after another, as they come. The token of the next page is cut from the end of the text. */
    async *read({ account, path, query }: Asked): AsyncGenerator<Buffer> {
      const headers = { authorization: `Bearer token-${account}` };
      for (let token: string | undefined, first = true; first || token; first = false) {
        const search = new URLSearchParams({ ...query, ...(token ? { next_token: token } : {}) });
        const answer = await pool.request({ method: 'GET', path: `/v2/usercollection/${path}?${search}`, headers });
        if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode}`);
        const body = Buffer.from(await answer.body.arrayBuffer());
        yield body;
        token = /"next_token":"([^"]+)"\}$/.exec(body.toString('latin1', body.length - 100))?.[1];
      }
    },
    close: () => pool.close(),
  };
}

/** A file that is filled by DuckDB's own means; its tables are made where there are none. */
export async function openLimit(path: string, { create, load }: LimitSql) {
  const instance = await DuckDBInstance.create(path, { threads: '2' });
  const connection = await instance.connect();
  const [[tables]] = (await connection.runAndReadAll('SELECT count(*) FROM duckdb_tables()')).getRows() as [[bigint]];
  if (!tables) for (const statement of create) await connection.run(statement);
  return {
    /** Loads the answers, as well as one can in SQL. */
    async load(): Promise<void> {
      await connection.run('BEGIN TRANSACTION');
      for (const statement of load) await connection.run(statement);
      await connection.run('COMMIT');
    },
    close(): void {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

/** Of an answer, in the folder of its collection. */
export const answerFile = (user: string, page: number) => `${user}.${String(page).padStart(7, '0')}.json`;

/** The limit of the write path: DuckDB's own read_json over the same bytes in files. */
export const readJson = defineTask(import.meta.url, 'readJson', async ({ path, sql }: { path: string; sql: LimitSql }) => {
  const limit = await openLimit(path, sql);
  const { cost } = await withCost(() => limit.load());
  limit.close();
  return cost;
});

export interface FetchAndLoadJob {
  url: string;
  /** By account: these are read side by side. */
  asked: Asked[][];
  path: string;
  /** An empty folder for the answers. */
  answers: string;
  sql: LimitSql;
}

/** The least one could do by hand: fetch every page into a file, then read_json over the files. The cost is that of all of this process. */
export const fetchAndLoadAnswers = defineTask(
  import.meta.url,
  'fetchAndLoadAnswers',
  async ({ url, asked, path, answers, sql }: FetchAndLoadJob) => {
    const pages = openPages(url, asked.length);
    for (const { collection } of asked.flat()) mkdirSync(join(answers, collection), { recursive: true });
    const fetchAccount = async (ranges: Asked[]) => {
      let page = 0;
      for (const range of ranges) {
        for await (const body of pages.read(range)) await writeFile(join(answers, range.collection, answerFile(range.user, page++)), body);
      }
    };
    await Promise.all(asked.map(fetchAccount));
    await pages.close();
    const limit = await openLimit(path, sql);
    await limit.load();
    limit.close();
    return wholeCost();
  },
);

export interface FetchChainsJob {
  url: string;
  /** Each is followed page by page, all side by side. */
  chains: Asked[][];
}

type Identity = (item: never) => string;

const ofDocument: Identity = ({ id }: { id: string }) => id;
const ofRow: Identity = (row: { timestamp_unix: number; source: string; bpm: number }) =>
  [row.timestamp_unix, row.source, row.bpm].join(' ');

/** Reads without storing: answers are parsed, and what is in them is told by names. */
export const fetchChains = defineTask(import.meta.url, 'fetchChains', async ({ url, chains }: FetchChainsJob) => {
  const identities = new Set<string>();
  let requests = 0;
  const { cost } = await withCost(async () => {
    const pages = openPages(url, chains.length);
    const follow = async (chain: Asked[]) => {
      for (const asked of chain) {
        const identityOf = asked.path === 'heartrate' ? ofRow : ofDocument;
        for await (const body of pages.read(asked)) {
          requests++;
          const { data } = JSON.parse(body.toString()) as { data: never[] };
          for (const item of data) identities.add(`${asked.user} ${asked.collection} ${identityOf(item)}`);
        }
      }
    };
    await Promise.all(chains.map(follow));
    await pages.close();
  });
  const all = [...identities].sort();
  return { ...cost, requests, things: all.length, hash: createHash('sha256').update(all.join('\n')).digest('hex') };
});
