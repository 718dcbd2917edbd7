import { openLimit } from '../read-json.ts';
import { performTask, withCost } from '../task.ts';

export interface ReadJsonJob {
  path: string;
  /** A pattern of files. */
  files: string;
}

/** The limit of the write path: DuckDB's own read_json over the same bytes in files. */
performTask(async ({ path, files }: ReadJsonJob) => {
  const limit = await openLimit(path);
  const { cost } = await withCost(() => limit.load(files));
  limit.close();
  return cost;
});
