import { mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openPages } from '../fetch-pages.ts';
import { answerFile, openLimit } from '../read-json.ts';
import { performTask, withCost } from '../task.ts';

export interface FetchAndLoadJob {
  url: string;
  users: string[];
  from: string;
  to: string;
  path: string;
  /** An empty folder for the answers. */
  answers: string;
}

/** The least one could do by hand: fetch every page into a file (accounts side by side), then read_json over the files. */
performTask(async ({ url, users, from, to, path, answers }: FetchAndLoadJob) => {
  mkdirSync(answers, { recursive: true });
  const { cost } = await withCost(async () => {
    const pages = openPages(url, users.length);
    const fetchAccount = async (user: string, account: number) => {
      let page = 0;
      for await (const body of pages.read({ account, path: 'daily_activity', query: { start_date: from, end_date: to } })) {
        await writeFile(join(answers, answerFile(user, page++)), body);
      }
    };
    await Promise.all(users.map(fetchAccount));
    await pages.close();
    const limit = await openLimit(path);
    await limit.load(join(answers, '*.json'));
    limit.close();
  });
  return cost;
});
