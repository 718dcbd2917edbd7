import { mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Asked, openPages } from '../fetch-pages.ts';
import type { LimitSql } from '../limit-sql.ts';
import { answerFile, openLimit } from '../read-json.ts';
import { performTask, wholeCost } from '../task.ts';

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
performTask(async ({ url, asked, path, answers, sql }: FetchAndLoadJob) => {
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
});
