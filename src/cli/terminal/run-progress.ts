import type { Progress } from '../../sync/runs/run.ts';
import { formatCount } from './print.ts';
import { barLine, type ShownProgress, showProgress } from './progress.ts';

/** The first moment says nothing of the rate. */
const RATE_AFTER_MS = 500;

/** Shows how a run goes on stderr. */
export const showRun = (): ShownProgress<Progress> =>
  showProgress((first: Progress, isBar) => {
    const tell = tellFacts(first, Date.now, isBar ? formatShort : formatCount);
    return {
      bar: (progress, columns) => barLine(shareOf(progress), tell(progress), columns),
      line: progress => `${settledOf(progress)}/${progress.windows.planned} windows, ${tell(progress)}`,
    };
  });

const settledOf = ({ windows: { done, failed } }: Progress) => done + failed;

const shareOf = (progress: Progress) => (progress.windows.planned ? settledOf(progress) / progress.windows.planned : 1);

/** Tells how a run goes, counted from the first progress that was seen: it may be somebody else's, and half done. */
export function tellFacts(first: Progress, now: () => number, format: (count: number) => string): (progress: Progress) => string {
  const startedAt = now();
  const storedOf = ({ documents, samples }: Progress) => documents + samples;
  const before = { settled: settledOf(first), stored: storedOf(first) };
  return progress => {
    const { documents, samples, requests, waits, windows, waiting_for: waitingFor, waiting_until: waiting } = progress;
    if (waitingFor !== undefined) return `waits for ${waitingFor}`;
    const ms = now() - startedAt;
    const settled = settledOf(progress) - before.settled;
    const left = windows.planned - settledOf(progress);
    // What has been done tells nothing of how long a wait is.
    const estimate = settled > 0 && left > 0 ? [`${formatSeconds((ms / 1000 / settled) * left)} left`] : [];
    return [
      ...(waiting ? [tellWaiting(waiting)] : estimate),
      `${format(documents)} documents`,
      `${format(samples)} samples`,
      `${format(requests)} requests`,
      ...(waits ? [`${format(waits)} waits`] : []),
      ...(ms >= RATE_AFTER_MS ? [`${format(Math.round(((storedOf(progress) - before.stored) * 1000) / ms))}/s`] : []),
    ].join(', ');
  };
}

/** `waiting until 05:10 for ada`, by the clock on the wall. */
function tellWaiting({ at, users }: NonNullable<Progress['waiting_until']>): string {
  const minute = new Date(Math.ceil(Date.parse(at) / 60_000) * 60_000);
  const time = [minute.getHours(), minute.getMinutes()].map(part => String(part).padStart(2, '0')).join(':');
  return `waiting until ${time} for ${users.length > SHOWN_USERS ? `${formatCount(users.length)} accounts` : users.join(', ')}`;
}

const SHOWN_USERS = 2;

const short = new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 });

/** 12.3K, 4.56M: for a line that must fit. */
const formatShort = (count: number): string => (count < 10_000 ? formatCount(count) : short.format(count));

function formatSeconds(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.ceil(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
