import { Pool } from 'undici';

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
