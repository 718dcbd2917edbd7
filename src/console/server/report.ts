import type { Source } from '../../app/find-source.ts';
import { Questions } from '../../app/questions/questions.ts';
import { didYouMean } from '../../base/did-you-mean.ts';
import { UsageError } from '../../base/errors.ts';
import { version } from '../../base/version.ts';
import type { Report } from '../api/report.ts';
import { rasterModel } from '../page/charts/raster-model.ts';
import { addDays, dayNumber, localText, offsetName, shortDay } from '../page/parts/format.ts';
import { METRICS, type Metric } from '../page/parts/metrics.ts';
import { askFor } from './columns.ts';
import type { Asking, ConsoleParts } from './handlers.ts';
import { ENOUGH, tellUnusual } from './night-words.ts';
import { dayAt } from './people-judged.ts';
import { rasterHandlers } from './raster.ts';
import { type Found, findMissing } from './report-missing.ts';
import { daysText, monthName, tellMeasured, tellMonth } from './report-words.ts';
import { findTrends } from './trends.ts';
import { unusualOf } from './unusual.ts';

/** What is asked of a page of paper. */
export interface ReportRequest {
  id: string;
  /** `2025-11` */
  month: string;
  metrics: readonly Metric[];
}

/** What is drawn where nothing else is asked for: as on the page of a person. */
export const USUAL_METRICS: readonly Metric[] = [
  ...(['average_hrv', 'lowest_heart_rate', 'temperature_deviation'] as const),
  ...(['total_sleep_duration', 'average_breath', 'sleep_score'] as const),
];

/** Days before the month that say what is usual. */
const BEFORE = 28;
/** Lines of what is unusual, and metrics of each, so that all of it stays on one side. */
const UNUSUAL = 3;
const METRICS_TOLD = 5;

export interface Made {
  html: string;
  /** Whether there is anything of the month. */
  isEmpty: boolean;
}

/**
 * A month of a person as a page of HTML that needs nothing else.
 * @throws UsageError where there is no such account, or where the month has not begun
 */
export async function makeReport(request: ReportRequest, source: Source, parts: ConsoleParts, signal: AbortSignal): Promise<Made> {
  const questions = new Questions(source.path);
  const end = () => void questions.close();
  signal.addEventListener('abort', end);
  try {
    const session = { role: 'reader', person: null, id: '', csrf: '', openedAt: 0, seenAt: 0 } as const;
    const report = await findReport(request, Date.parse(source.at) / 1000, { ...parts, session, questions, signal });
    const { renderReport } = await import('../paper.js');
    return { html: renderReport(report), isEmpty: !report.raster.sleeps.day.length && report.trends.every(isEmptyTrend) };
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', end);
    await questions.close();
  }
}

const isEmptyTrend = ({ value, part }: Report['trends'][number]) => [...value, ...part].every(one => one === null);

async function ensureAccount(id: string, { questions }: Asking): Promise<void> {
  const names = (await askFor(questions, 'people')).texts('id').map(name => name ?? '');
  // Of who was removed the rows are still there.
  if (names.includes(id) || (await askFor(questions, 'person-days', { user: id })).count) return;
  const nearest = didYouMean(id, names);
  const known = `${names.slice(0, 20).join(', ') || 'none yet'}${names.length > 20 ? ` and ${names.length - 20} more` : ''}`;
  throw new UsageError(`there is no account ${id}${nearest ? ` (did you mean ${nearest}?)` : ''}: there are ${known}`);
}

/** @param at epoch seconds: of when the data is */
async function findReport({ id, month, metrics }: ReportRequest, at: number, asking: Asking): Promise<Report> {
  await ensureAccount(id, asking);
  const clocks = await askFor(asking.questions, 'day-clocks', { user: id });
  const offset = clocks.number('utc_offset', clocks.count - 1) ?? 0;
  const known = Math.min(at, asking.now() / 1000);
  const today = dayAt(known, offset);
  const from = `${month}-01`;
  const last = addDays(`${dayAt((dayNumber(from) + 31) * 86_400, 0).slice(0, 7)}-01`, -1);
  if (from > today) throw new UsageError(`${month} has not begun yet: what is stored is of ${today}`);
  const range = { id, from, to: last < today ? last : today };
  const [raster, { trends }] = await Promise.all([
    rasterHandlers['GET people/:id/raster'](range, asking),
    findTrends({ ...range, from: addDays(from, -BEFORE), metrics: Object.keys(METRICS).join(',') }, asking),
  ]);
  const all = new Map(trends.map(trend => [trend.metric, trend]));
  const shown = metrics.flatMap(metric => all.get(metric) ?? []).map(trend => sliceFrom(trend, from));
  const found = { ...range, today, raster, trends: shown, asking };
  const missing = await findMissing(found);
  const unusual = findUnusual(id, trends, from);
  const isJudged = trends.some(({ day, z }) => z.some((one, at) => one !== null && (day[at] ?? '') >= from));
  return {
    ...range,
    name: monthName(month),
    sentence: tell({ ...found, last, all, unusual, isJudged }),
    raster,
    trends: shown,
    missing: Object.fromEntries(missing.nights),
    notes: {
      unusual: unusual.length
        ? linesOf(unusual)
        : [isJudged ? 'Nothing that is called unusual.' : `Nothing is judged before there are ${ENOUGH} nights.`],
      missing: missing.lines.length ? missing.lines : ['Nothing: every day has its night and its values.'],
      measured: tellMeasured(id, offsetsOf(raster), metrics),
    },
    made: `Ringneck ${version} · data of ${localText(known, offset)} (${offsetName(offset)})`,
  };
}

type Trend = Report['trends'][number];

function sliceFrom(trend: Trend, from: string): Trend {
  const first = trend.day.findIndex(day => day >= from);
  const cut = <Item>(items: readonly Item[]) => (first < 0 ? [] : items.slice(first));
  const { metric, day, value, part, median, spread, z } = trend;
  return { metric, day: cut(day), value: cut(value), part: cut(part), median: cut(median), spread: cut(spread), z: cut(z) };
}

interface Unusual {
  day: string;
  text: string;
  /** By how many robust standard deviations, either way. */
  farthest: number;
}

/** Days that have something to be called unusual, as the page of a person calls it. */
function findUnusual(id: string, trends: readonly Trend[], from: string): Unusual[] {
  const days = [...new Set(trends.flatMap(({ day }) => day))].filter(day => day >= from).sort();
  return days.flatMap(day => {
    const rows = trends.map(({ metric, day: own, value, median, z }) => {
      const row = own.indexOf(day);
      return { metric, value: value[row] ?? null, median: median[row] ?? null, z: z[row] ?? null, nights: 0 };
    });
    const called = unusualOf(rows);
    const [first] = called;
    if (!first) return [];
    const more = called.length > METRICS_TOLD ? `; ${called.length - METRICS_TOLD} more` : '';
    return [{ day, text: `${tellUnusual(called.slice(0, METRICS_TOLD), id)}${more}`, farthest: Math.abs(first.z) }];
  });
}

/** Of many days those that are farthest from the usual. */
function linesOf(unusual: readonly Unusual[]): string[] {
  const told = new Set([...unusual].sort((a, b) => b.farthest - a.farthest).slice(0, UNUSUAL));
  const lines = unusual.filter(one => told.has(one)).map(({ day, text }) => `${shortDay(day)}: ${text}.`);
  const rest = unusual.filter(one => !told.has(one)).map(({ day }) => day);
  return rest.length ? [...lines, `Less far: ${daysText(rest)}.`] : lines;
}

interface ToTell extends Found {
  last: string;
  all: ReadonlyMap<string, Trend>;
  unusual: readonly Unusual[];
  isJudged: boolean;
}

function tell({ from, to, today, last, raster, all, unusual, isJudged }: ToTell): Report['sentence'] {
  const { sleeps } = raster;
  const beds = sleeps.day.flatMap((day, at) => {
    const [start, end, offset] = [sleeps.start[at] ?? 0, sleeps.end[at] ?? 0, sleeps.offset[at] ?? 0];
    return sleeps.is_main[at] ? [{ day, start, end, offset, endOffset: sleeps.end_offset[at] ?? offset }] : [];
  });
  const durations = all.get('total_sleep_duration');
  const asleep = (isWanted: (day: string) => boolean) =>
    durations?.value.filter((value, at): value is number => value !== null && isWanted(durations.day[at] ?? '')) ?? [];
  return tellMonth({
    name: monthName(from.slice(0, 7)),
    isOver: last < today,
    days: dayNumber(to) - dayNumber(from) + 1,
    beds,
    asleep: asleep(day => day >= from),
    before: asleep(day => day < from),
    unusual: unusual.map(({ day }) => day),
    isJudged,
  });
}

/** The clocks of the nights, each with the day from which it counts. */
function offsetsOf(raster: Report['raster']): { offset: number; from: string }[] {
  const { rows, moves } = rasterModel(raster, 'own');
  return moves.map(({ row, offset }) => ({ offset, from: rows[row]?.day ?? '' }));
}
