import cliProgress from 'cli-progress';
import type { Progress } from '../../jobs/run.ts';
import { formatCount, remark } from './print.ts';

const LINE_EVERY_MS = 5_000;
/** The first moment says nothing of the rate. */
const RATE_AFTER_MS = 500;
const LONGEST_BAR = 24;
const SHORTEST_BAR = 4;
const USUAL_COLUMNS = 80;

/** Shows how a run goes on stderr: a bar on a terminal, a plain line now and then elsewhere. */
export function showProgress(): { update(progress: Progress): void; end(): void } {
  return process.stderr.isTTY ? showBar() : showLines();
}

function showBar() {
  let tell: ((progress: Progress) => string) | undefined;
  let last: Progress | undefined;
  const bar = new cliProgress.SingleBar({
    format: () => (last && tell ? barLine(last, tell(last), process.stderr.columns || USUAL_COLUMNS) : ''),
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: false,
    linewrap: false,
    gracefulExit: false,
  });
  return {
    update(progress: Progress) {
      last = progress;
      const { done, failed, planned } = progress.windows;
      if (!tell) {
        tell = tellFacts(progress, Date.now, formatShort);
        bar.start(planned, done + failed);
      }
      bar.setTotal(planned);
      bar.update(done + failed);
    },
    end() {
      if (tell) bar.stop();
    },
  };
}

/** The facts and, in what they leave of the width, the bar. */
export function barLine({ windows: { done, failed, planned } }: Progress, facts: string, columns: number): string {
  const share = planned ? (done + failed) / planned : 1;
  const text = ` ${Math.floor(share * 100)}%  ${facts}`;
  const size = Math.max(SHORTEST_BAR, Math.min(LONGEST_BAR, columns - 1 - text.length));
  const full = Math.floor(share * size);
  return `${'█'.repeat(full)}${'░'.repeat(size - full)}${text}`;
}

function showLines() {
  let next = 0;
  let tell: ((progress: Progress) => string) | undefined;
  return {
    update(progress: Progress) {
      tell ??= tellFacts(progress, Date.now, formatCount);
      if (Date.now() < next) return;
      next = Date.now() + LINE_EVERY_MS;
      const { done, failed, planned } = progress.windows;
      remark(`${done + failed}/${planned} windows, ${tell(progress)}`);
    },
    end() {},
  };
}

/** Tells how a run goes, counted from the first progress that was seen: it may be somebody else's, and half done. */
export function tellFacts(first: Progress, now: () => number, format: (count: number) => string): (progress: Progress) => string {
  const startedAt = now();
  const settledOf = ({ windows: { done, failed } }: Progress) => done + failed;
  const storedOf = ({ documents, samples }: Progress) => documents + samples;
  const before = { settled: settledOf(first), stored: storedOf(first) };
  return progress => {
    const { documents, samples, requests, waits, windows } = progress;
    const ms = now() - startedAt;
    const settled = settledOf(progress) - before.settled;
    const left = windows.planned - settledOf(progress);
    return [
      ...(settled > 0 && left > 0 ? [`${formatSeconds((ms / 1000 / settled) * left)} left`] : []),
      `${format(documents)} documents`,
      `${format(samples)} samples`,
      `${format(requests)} requests`,
      ...(waits ? [`${format(waits)} waits`] : []),
      ...(ms >= RATE_AFTER_MS ? [`${format(Math.round(((storedOf(progress) - before.stored) * 1000) / ms))}/s`] : []),
    ].join(', ');
  };
}

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
