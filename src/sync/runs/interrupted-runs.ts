import { listRunning } from '../../ledger/runs.ts';
import type { Pipeline } from '../pipeline.ts';
import { nameRun, type RunName } from './run-name.ts';

/** Runs that the ledger calls running and nobody works on, by their id. */
export async function findInterrupted(
  { warehouse }: Pick<Pipeline, 'warehouse'>,
  workedOn: ReadonlySet<string>,
): Promise<ReadonlyMap<string, RunName>> {
  const interrupted = (await listRunning(warehouse)).filter(({ id }) => !workedOn.has(id));
  return new Map(interrupted.map(({ id, request }) => [id, request]));
}

/** What goes on with such a run. */
export const whatGoesOn = ({ kind }: RunName): string =>
  kind === 'backfill'
    ? 'the same command, or any start of ringneck up or ringneck nightly, goes on with it'
    : 'any start of ringneck up or ringneck nightly goes on with it';

export const tellInterrupted = (run: RunName): string => `${nameRun(run)} was interrupted: ${whatGoesOn(run)}`;
