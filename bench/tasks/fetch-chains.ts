import { createHash } from 'node:crypto';
import { type Asked, openPages } from '../fetch-pages.ts';
import { HEART_RATE } from '../recording.ts';
import { performTask, withCost } from '../task.ts';

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
performTask(async ({ url, chains }: FetchChainsJob) => {
  const identities = new Set<string>();
  let requests = 0;
  const { cost } = await withCost(async () => {
    const pages = openPages(url, chains.length);
    const follow = async (chain: Asked[]) => {
      for (const asked of chain) {
        const identityOf = asked.collection === HEART_RATE ? ofRow : ofDocument;
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
