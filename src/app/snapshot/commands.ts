import { isoOf } from '../../../schema/instant.ts';
import type { App } from '../app.ts';
import type { CommandContext } from '../control/command.ts';

export interface DatedReport {
  path: string;
  at: string;
  manifest: string;
  sha256: string;
}

type Stoppable = Partial<Pick<CommandContext<never>, 'signal'>>;

/** What the owner of a data folder publishes for readers. */
export const snapshotCommands = { snapshot, datedSnapshot, freshSnapshot };

async function snapshot({ snapshots }: App, _: Record<string, never>, { signal }: Stoppable = {}): Promise<{ path: string; at: string }> {
  const { path, at } = await snapshots.publish(signal);
  return { path, at: isoOf(at * 1000) };
}

async function datedSnapshot({ snapshots }: App, _: Record<string, never>, { signal }: Stoppable = {}): Promise<DatedReport> {
  const { path, at, manifest, sha256 } = await snapshots.keepDated(signal);
  return { path, at: isoOf(at * 1000), manifest, sha256 };
}

async function freshSnapshot({ snapshots }: App): Promise<{ path: string; at: string; stale: boolean }> {
  const { path, at, stale } = await snapshots.fresh();
  return { path, at: isoOf(at * 1000), stale };
}
