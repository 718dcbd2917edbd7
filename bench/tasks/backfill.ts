import { operationsOf } from '../../src/cli/operations.ts';
import { Owner } from '../../src/cli/owner.ts';
import { type Folder, openSettings } from '../folder.ts';
import { performTask, withCost } from '../task.ts';

export interface BackfillJob extends Folder {
  from: string;
  to: string;
  collections: string[];
  refresh: boolean;
}

/** All that `ringneck backfill` does after its modules are loaded: from opening the folder (queue included) to closing it. */
performTask(async ({ from, to, collections, refresh, ...folder }: BackfillJob) => {
  const { settings, log } = openSettings(folder);
  const { cost, result } = await withCost(async () => {
    const owner = await Owner.open({ settings, log });
    try {
      const input = { from, to, collections, refresh, plan: false };
      const report = await operationsOf(owner).backfill(input, { emit: () => {}, signal: new AbortController().signal });
      if (report.state !== 'complete') throw new Error(`the backfill ended as ${report.state}: ${JSON.stringify(report.failures)}`);
      const { documents, samples, unchanged, requests } = report;
      return { documents, samples, unchanged, requests };
    } finally {
      await owner.close();
    }
  });
  return { ...cost, ...result };
});
