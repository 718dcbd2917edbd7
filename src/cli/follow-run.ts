import type { Skipped } from '../../jobs/backfill.ts';
import { joinSummaries, type Progress, type Run, type RunSummary } from '../../jobs/run.ts';
import type { OperationContext } from '../control/operations.ts';
import type { Owner } from './owner.ts';

export interface RunReport extends RunSummary {
  /** What was left out, because it was parked or paused before. */
  not_asked: Skipped[];
  /** Where heart rate was read, once known. */
  heart_rate_path: string | null;
}

const PROGRESS_MS = 200;

/** Follows a run to its end, and those in which it goes on; a caller who stops ends the run, an owner who closes leaves it to the next start. */
export async function followRun(
  owner: Owner,
  run: Run,
  skipped: Skipped[],
  { emit, signal }: OperationContext<Progress>,
): Promise<RunReport> {
  let current = run;
  let mine = run.claim();
  const timer = setInterval(() => emit(current.progress), PROGRESS_MS);
  let close: (reason: unknown) => void = () => undefined;
  const closing = new Promise<never>((_, reject) => {
    close = reject;
  });
  const onAbort = () => {
    if ((signal.reason as { exitCode?: number } | undefined)?.exitCode === 130 && mine) void current.stop();
    else close(signal.reason);
  };
  signal.addEventListener('abort', onAbort);
  if (signal.aborted) onAbort();
  try {
    let summary = await Promise.race([run.done, closing]);
    const followed = new Set([run]);
    for (const started of run.goesOnIn) {
      if (summary.state === 'stopped') break;
      const next = await Promise.race([started, closing]);
      if (followed.has(next)) continue;
      followed.add(next);
      current = next;
      mine = next.claim();
      summary = joinSummaries(summary, await Promise.race([next.done, closing]));
    }
    emit(current.progress);
    if (summary.state !== 'stopped') await owner.snapshots.publishAfterRun(signal);
    return { ...summary, not_asked: skipped, heart_rate_path: (await owner.client()).heartRatePath ?? null };
  } finally {
    clearInterval(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
