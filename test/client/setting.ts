import { expect, onTestFinished } from 'vitest';
import { Client, type ClientOptions, type Page } from '../../src/client/client.ts';
import { ServiceError } from '../../src/client/error.ts';
import { type FaultService, type Script, startFaultService } from '../support/fault-service.ts';

export const TOKEN = 'secret-token/of+anna==';
export const readiness = { path: 'daily_readiness' };
export const READINESS = '/v2/usercollection/daily_readiness';

export interface Setting {
  service: FaultService;
  client: Client;
  /** What was slept, in milliseconds; nobody really sleeps. */
  slept: number[];
  /** Moments that began and did not end. */
  open: Set<number>;
  begun(): number;
  /** Answers noted for the memory of routes. */
  noted: string[];
}

/** A service, and a client of it whose time is moved by its sleeping only. */
export async function set(scripts: Record<string, Script> = {}, options: Partial<ClientOptions> = {}): Promise<Setting> {
  const service = await startFaultService(scripts);
  const slept: number[] = [];
  const open = new Set<number>();
  const noted: string[] = [];
  const answered = new Set<string>();
  let time = Date.now();
  let moment = 0;
  const client = new Client({
    baseUrl: service.url,
    clock: {
      lease() {
        moment += 1;
        open.add(moment);
        return moment;
      },
      release(ended) {
        expect(open.delete(ended), 'a moment ends once').toBe(true);
      },
    },
    now: () => time,
    sleep: async ms => {
      slept.push(ms);
      time += ms;
    },
    random: () => 1,
    routes: {
      hasAnswered: route => answered.has(route),
      hasAnsweredAny: () => answered.size > 0,
      note(route, status) {
        noted.push(`${route} ${status}`);
        if (status === 200) answered.add(route);
      },
    },
    ...options,
  });
  onTestFinished(async () => {
    await client.close();
    await service.close();
    expect([...open], 'moments that never ended').toEqual([]);
  });
  return { service, client, slept, open, begun: () => moment, noted };
}

/** Every document of a read. */
export async function readAll(pages: AsyncGenerator<Page>): Promise<unknown[]> {
  const documents: unknown[] = [];
  for await (const page of pages) documents.push(...page.documents);
  return documents;
}

/** The error that a read or a request must end with; its text must not give anything away. */
export async function errorOf(promise: Promise<unknown>): Promise<ServiceError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ServiceError);
  const text = `${(error as Error).stack} ${JSON.stringify(error)} ${String((error as Error).cause)}`;
  for (const secret of [TOKEN, encodeURIComponent(TOKEN), 'start_date', 'next_token=', '2025-01-0']) expect(text).not.toContain(secret);
  return error as ServiceError;
}

/** A page of the readiness collection. */
export function page(ids: string[], nextToken?: string | null): { json: unknown } {
  return { json: { data: ids.map(id => ({ id })), ...(nextToken !== undefined && { next_token: nextToken }) } };
}

export const RANGE = { token: TOKEN, from: '2025-01-01', to: '2025-01-09' };
