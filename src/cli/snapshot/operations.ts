import { isoOf } from '../../../jobs/status.ts';
import type { Owner } from '../owner.ts';

export interface DatedReport {
  path: string;
  at: string;
  manifest: string;
  sha256: string;
}

/** What the owner of a data folder publishes for readers. Plain JSON, as all operations. */
export function snapshotOperations({ snapshots }: Owner) {
  return {
    async snapshot(_: Record<string, never>): Promise<{ path: string; at: string }> {
      const { path, at } = await snapshots.publish();
      return { path, at: isoOf(at * 1000) };
    },

    async datedSnapshot(_: Record<string, never>): Promise<DatedReport> {
      const { path, at, manifest, sha256 } = await snapshots.keepDated();
      return { path, at: isoOf(at * 1000), manifest, sha256 };
    },

    async freshSnapshot(_: Record<string, never>): Promise<{ path: string; at: string; stale: boolean }> {
      const { path, at, stale } = await snapshots.fresh();
      return { path, at: isoOf(at * 1000), stale };
    },
  };
}
