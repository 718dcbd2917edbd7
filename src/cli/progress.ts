import cliProgress from 'cli-progress';
import type { Progress } from '../../jobs/run.ts';
import { formatCount, remark } from './print.ts';

const LINE_EVERY_MS = 5_000;

/** Shows how a run goes on stderr: a bar on a terminal, a plain line now and then elsewhere. */
export function showProgress(): { update(progress: Progress): void; end(): void } {
  return process.stderr.isTTY ? showBar() : showLines();
}

function showBar() {
  const bar = new cliProgress.SingleBar(
    {
      format: '{bar} {percentage}%  {value}/{total} windows  {facts}',
      stream: process.stderr,
      hideCursor: true,
      clearOnComplete: false,
      barsize: 24,
      linewrap: false,
      gracefulExit: false,
    },
    cliProgress.Presets.shades_classic,
  );
  let rate: Rate | undefined;
  return {
    update(progress: Progress) {
      const { done, failed, planned } = progress.windows;
      if (!rate) {
        rate = startRate(progress);
        bar.start(planned, done + failed, { facts: '' });
      }
      bar.setTotal(planned);
      bar.update(done + failed, { facts: factsOf(progress, rate) });
    },
    end() {
      if (rate) bar.stop();
    },
  };
}

function showLines() {
  let next = 0;
  let rate: Rate | undefined;
  return {
    update(progress: Progress) {
      rate ??= startRate(progress);
      if (Date.now() < next) return;
      next = Date.now() + LINE_EVERY_MS;
      const { done, failed, planned } = progress.windows;
      remark(`${done + failed}/${planned} windows, ${factsOf(progress, rate)}`);
    },
    end() {},
  };
}

interface Rate {
  startedAt: number;
  /** Windows that were settled before we looked. */
  before: number;
}

const startRate = ({ windows: { done, failed } }: Progress): Rate => ({ startedAt: Date.now(), before: done + failed });

function factsOf({ documents, samples, requests, waits, windows }: Progress, rate: Rate): string {
  const seconds = Math.max(0.001, (Date.now() - rate.startedAt) / 1000);
  const settled = windows.done + windows.failed - rate.before;
  const left = windows.planned - windows.done - windows.failed;
  const eta = settled > 0 && left > 0 ? `, ${formatSeconds((seconds / settled) * left)} left` : '';
  const waited = waits ? `, ${formatCount(waits)} waits` : '';
  const perSecond = formatCount(Math.round((documents + samples) / seconds));
  return `${formatCount(documents)} documents, ${formatCount(samples)} samples, ${formatCount(requests)} requests${waited}, ${perSecond}/s${eta}`;
}

function formatSeconds(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.ceil(whole / 60)} min`;
  return `${Math.floor(whole / 3600)} h ${Math.ceil((whole % 3600) / 60)} min`;
}
