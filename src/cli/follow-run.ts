import type { Skipped } from '../../jobs/backfill.ts';
import type { Progress, Run, RunSummary } from '../../jobs/run.ts';
import type { OperationContext } from '../control/operations.ts';
import type { Owner } from './owner.ts';

export interface RunReport extends RunSummary {
  /** What was left out, because it was parked or paused before. */
  not_asked: Skipped[];
  /** Where heart rate was read, once known. */
  heart_rate_path: string | null;
}

const PROGRESS_MS = 200;

/** Follows a run to its end; a caller who stops ends the run, an owner who closes leaves it to the next start. */
export async function followRun(
  owner: Owner,
  run: Run,
  skipped: Skipped[],
  { emit, signal }: OperationContext<Progress>,
): Promise<RunReport> {
  const mine = run.claim();
  const timer = setInterval(() => emit(run.progress), PROGRESS_MS);
  let close: (reason: unknown) => void = () => undefined;
  const closing = new Promise<never>((_, reject) => {
    close = reject;
  });
  const onAbort = () => {
    if ((signal.reason as { exitCode?: number } | undefined)?.exitCode === 130 && mine) void run.stop();
    else close(signal.reason);
  };
  signal.addEventListener('abort', onAbort);
  if (signal.aborted) onAbort();
  try {
    const summary = await Promise.race([run.done, closing]);
    emit(run.progress);
    if (summary.state !== 'stopped') await owner.snapshots.publishAfterRun(signal);
    return { ...summary, not_asked: skipped, heart_rate_path: (await owner.client()).heartRatePath ?? null };
  } finally {
    clearInterval(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
