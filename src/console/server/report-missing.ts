import type { Report } from '../api/report.ts';
import { addDays, dayNumber } from '../page/parts/format.ts';
import { DAY_METRICS, isMetric, wordsOf } from '../page/parts/metrics.ts';
import { type Answered, askFor } from './columns.ts';
import type { Asking } from './handlers.ts';
import { linesByReason, tellNoNight, tellWhy } from './report-words.ts';

type Trend = Report['trends'][number];

/** Lines of nights, and in all, so that all of it stays on one side. */
const NIGHTS = 3;
const LINES = 5;

/** A month, as far as it has been asked for. */
export interface Found {
  id: string;
  from: string;
  to: string;
  today: string;
  raster: Report['raster'];
  trends: readonly Trend[];
  asking: Asking;
}

interface Missing {
  /** Why there is no night, by day. */
  nights: Map<string, string>;
  lines: string[];
}

/** What the days of a month lack, and why. */
export async function findMissing(found: Found): Promise<Missing> {
  const { id, from, to, today, asking } = found;
  const parameters = { user: id, from, to };
  const [facts, coverage] = await Promise.all([
    askFor(asking.questions, 'night-missing', parameters),
    askFor(asking.questions, 'report-coverage', parameters),
  ]);
  const days = Array.from({ length: dayNumber(to) - dayNumber(from) + 1 }, (_, at) => addDays(from, at));
  const { sleeps } = found.raster;
  const hasNight = new Set(sleeps.day.filter((_, at) => sleeps.is_main[at]));
  const rowOf = new Map(facts.rows().map(row => [facts.text('day', row), row]));
  const nights = new Map(
    days.filter(day => !hasNight.has(day)).map(day => [day, whyNoNight(day, { ...found, facts, row: rowOf.get(day) ?? -1 })]),
  );
  const lines = linesByReason('No night', groupDays(nights), NIGHTS);
  for (const trend of found.trends) lines.push(...valuesMissing(trend, days, { today, hasNight, coverage }));
  return {
    nights,
    lines: lines.length > LINES ? [...lines.slice(0, LINES), 'More is missing: the table has — there.'] : lines,
  };
}

function whyNoNight(day: string, { facts, row, today, raster: { sleeps } }: Found & { facts: Answered; row: number }): string {
  return tellNoNight({
    isToday: day >= today,
    state: facts.text('state', row),
    reason: facts.text('reason', row),
    nonWear: facts.number('non_wear_time', row),
    isWorn: !facts.isTrue('ring_not_worn', row),
    unended: facts.number('unended', row) ?? 0,
    naps: sleeps.day.filter((one, at) => one === day && !sleeps.is_main[at]).length,
  });
}

/** The days of each reason. */
function groupDays(reasons: ReadonlyMap<string, string>): Map<string, string[]> {
  const days = new Map<string, string[]>();
  for (const [day, reason] of reasons) days.set(reason, [...(days.get(reason) ?? []), day]);
  return days;
}

interface Around {
  today: string;
  hasNight: ReadonlySet<string>;
  coverage: Answered;
}

/** Days without a value that do not lack their night, where that is where it comes from. */
function valuesMissing(trend: Trend, days: readonly string[], { today, hasNight, coverage }: Around): string[] {
  if (!isMetric(trend.metric)) return [];
  const values = new Map(trend.day.map((day, at) => [day, trend.value[at] ?? trend.part[at] ?? null]));
  const rows = coverage.rows(row => coverage.text('metric', row) === trend.metric);
  const rowOf = new Map(rows.map(row => [coverage.text('day', row), row]));
  const isOfDay = DAY_METRICS.includes(trend.metric);
  const missing = days.filter(day => day < today && (values.get(day) ?? null) === null && (isOfDay || hasNight.has(day)));
  const why = (day: string) => {
    const row = rowOf.get(day) ?? -1;
    return rows.length
      ? tellWhy(coverage.text('state', row), coverage.text('reason', row), 'it came without a value')
      : 'the night came without it';
  };
  return linesByReason(wordsOf(trend.metric).name, groupDays(new Map(missing.map(day => [day, why(day)]))), 1);
}
