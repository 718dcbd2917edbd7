import type { Questions } from '../../app/questions/questions.ts';
import type { AnswerOf } from '../api/routes.ts';
import type { trendRoutes } from '../api/trends.ts';
import { USUAL_RANGE } from '../page/asked.ts';
import { addDays, dayNumber } from '../page/parts/format.ts';
import { isMetric, METRICS } from '../page/parts/metrics.ts';
import { type Answered, askFor } from './columns.ts';
import type { Asking, Handlers } from './handlers.ts';
import { findPerson } from './person.ts';
import { Refusal } from './refusal.ts';

type Trends = AnswerOf<'GET people/:id/trends'>;

/** What is answered at once: three years. */
const MOST_DAYS = 1100;

export const trendHandlers: Handlers<keyof typeof trendRoutes> = {
  'GET people/:id/trends': async ({ id, metrics, day: given, days }, asking) => {
    refuseLong(days);
    const { last, newest } = await findPerson(id, asking);
    const day = given === 'newest' ? newest : given;
    return findTrends({ id, metrics, ...rangeOf(day, last, days) }, asking);
  },
};

interface Range {
  from: string;
  to: string;
}

interface Wanted extends Range {
  id: string;
  /** Their names, with commas between. */
  metrics: string;
}

/** A range with a day in it, which stays where it is while one steps through its days. */
function rangeOf(day: string, last: string, days: number): Range {
  const to = addDays(last, -days * Math.max(0, Math.floor((dayNumber(last) - dayNumber(day)) / days)));
  return { from: addDays(to, 1 - days), to };
}

export const EVERY_METRIC = Object.keys(METRICS).join(',');

/**
 * A day of somebody against what is usual, each metric by the row of the answer that tells it. Days around it are asked for with it: those that
 * are shown as trends beside it, where nobody has chosen others.
 */
export async function askUsual({ id, day, last }: { id: string; day: string; last: string }, questions: Questions) {
  const range = rangeOf(day, day > last ? day : last, USUAL_RANGE);
  const found = await askFor(questions, 'trends', { user: id, metrics: EVERY_METRIC, ...range });
  const rows = found.rows(row => found.text('day', row) === day);
  return { found, rowOf: new Map(rows.map(row => [found.text('metric', row), row])) };
}

/** Metrics of somebody who is there. */
export async function findTrends({ id, metrics, from, to }: Wanted, asking: Asking): Promise<Trends> {
  const names = [...new Set(metrics.split(','))];
  const strange = names.find(name => !isMetric(name));
  if (strange !== undefined) throw new Refusal(400, `${strange} is no metric.`, 'The metrics are those of baselines.metric.');
  const parameters = { user: id, metrics: names.join(','), from, to };
  const isUsual = dayNumber(to) - dayNumber(from) + 1 === USUAL_RANGE;
  const found = await askFor(asking.questions, 'trends', isUsual ? { ...parameters, metrics: EVERY_METRIC } : parameters);
  return { from, to, trends: names.map(metric => trendOf(metric, found)), sql: asking.questions.sqlOf('trends', parameters) };
}

function refuseLong(days: number): void {
  if (days > MOST_DAYS) throw new Refusal(413, `${days} days are more than are answered at once.`, `Ask for ${MOST_DAYS} days at most.`);
}

/** What is neither counted nor part of a day is absurd. */
const partOf = (value: number | null, counted: number | null) =>
  value !== null && counted === null && Math.abs(value) < 1e100 ? value : null;

function trendOf(metric: string, found: Answered): Trends['trends'][number] {
  const rows = found.rows(row => found.text('metric', row) === metric);
  return {
    metric,
    day: rows.map(row => found.text('day', row) ?? ''),
    value: found.numbers('counted', rows),
    part: rows.map(row => partOf(found.number('value', row), found.number('counted', row))),
    median: found.numbers('median_28', rows),
    spread: found.numbers('spread', rows),
    z: found.numbers('z', rows),
  };
}
