import { isoOf } from '../../sync/status.ts';
import type { Owner } from '../app.ts';
import type { OperationContext } from '../control/operations.ts';

export interface DatedReport {
  path: string;
  at: string;
  manifest: string;
  sha256: string;
}

type Stoppable = Partial<Pick<OperationContext<never>, 'signal'>>;

/** What the owner of a data folder publishes for readers. Plain JSON, as all operations. */
export function snapshotOperations({ snapshots }: Owner) {
  return {
    async snapshot(_: Record<string, never>, { signal }: Stoppable = {}): Promise<{ path: string; at: string }> {
      const { path, at } = await snapshots.publish(signal);
      return { path, at: isoOf(at * 1000) };
    },

    async datedSnapshot(_: Record<string, never>, { signal }: Stoppable = {}): Promise<DatedReport> {
      const { path, at, manifest, sha256 } = await snapshots.keepDated(signal);
      return { path, at: isoOf(at * 1000), manifest, sha256 };
    },

    async freshSnapshot(_: Record<string, never>): Promise<{ path: string; at: string; stale: boolean }> {
      const { path, at, stale } = await snapshots.fresh();
      return { path, at: isoOf(at * 1000), stale };
    },
  };
}
