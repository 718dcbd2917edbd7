import { createHash } from 'node:crypto';
import { addDays } from '../../schema/instant.ts';
import { openPages } from '../fetch-pages.ts';
import { HEART_RATE, resourceNamed } from '../recording.ts';
import { performTask, withCost } from '../task.ts';

export interface FetchChainsJob {
  url: string;
  users: string[];
  from: string;
  to: string;
  collections: string[];
}

/** What a request for heart rate may span at most (specification 4.3). */
const HEART_RATE_DAYS = 30;

/**
 * One chain of pages for each account, all accounts side by side; a chain reads one collection after another, page by page. Answers
 * are parsed, and nothing is stored.
 */
performTask(async ({ url, users, from, to, collections }: FetchChainsJob) => {
  const identities = users.map(() => new Set<string>());
  let requests = 0;
  const { cost } = await withCost(async () => {
    const pages = openPages(url, users.length);
    const follow = async (account: number, path: string, query: Record<string, string>, identityOf: (item: never) => string) => {
      for await (const body of pages.read({ account, path, query })) {
        requests++;
        const { data } = JSON.parse(body.toString()) as { data: never[] };
        for (const item of data) identities[account]!.add(identityOf(item));
      }
    };
    const readAccount = async (account: number) => {
      for (const name of collections) {
        if (name !== HEART_RATE) {
          const query = { start_date: from, end_date: to };
          await follow(account, resourceNamed(name).path, query, ({ id }: { id: string }) => `${name} ${id}`);
          continue;
        }
        for (let day = from; day <= to; day = addDays(day, HEART_RATE_DAYS)) {
          const end = [addDays(day, HEART_RATE_DAYS), addDays(to, 1)].sort()[0]!;
          const query = { start_datetime: `${day}T00:00:00Z`, end_datetime: `${end}T00:00:00Z` };
          await follow(account, 'heartrate', query, (row: { timestamp_unix: number; source: string; bpm: number }) =>
            [name, row.timestamp_unix, row.source, row.bpm].join(' '),
          );
        }
      }
    };
    await Promise.all(users.map((_, account) => readAccount(account)));
    await pages.close();
  });
  const all = users.flatMap((user, account) => [...identities[account]!].map(identity => `${user} ${identity}`)).sort();
  return { ...cost, requests, things: all.length, hash: createHash('sha256').update(all.join('\n')).digest('hex') };
});
