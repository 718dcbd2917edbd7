import type { AnswerOf, ParsedInputOf } from '../api/routes.ts';
import type { trendRoutes } from '../api/trends.ts';
import { dayNumber } from '../page/parts/format.ts';
import { isMetric } from '../page/parts/metrics.ts';
import { type Answered, askFor } from './columns.ts';
import type { Asking, Handlers } from './handlers.ts';
import { findPerson } from './person.ts';
import { Refusal } from './refusal.ts';

type Trends = AnswerOf<'GET people/:id/trends'>;

/** What is answered at once: three years. */
const MOST_DAYS = 1100;

export const trendHandlers: Handlers<keyof typeof trendRoutes> = {
  'GET people/:id/trends': findTrends,
};

async function findTrends({ id, metrics, from, to }: ParsedInputOf<'GET people/:id/trends'>, asking: Asking): Promise<Trends> {
  const names = [...new Set(metrics.split(','))];
  const strange = names.find(name => !isMetric(name));
  if (strange !== undefined) throw new Refusal(400, `${strange} is no metric.`, 'The metrics are those of baselines.metric.');
  const days = dayNumber(to) - dayNumber(from) + 1;
  if (days < 1) throw new Refusal(400, `${to} lies before ${from}.`);
  if (days > MOST_DAYS) throw new Refusal(413, `${days} days are more than are answered at once.`, `Ask for ${MOST_DAYS} days at most.`);
  await findPerson(id, asking);
  const parameters = { user: id, metrics: names.join(','), from, to };
  const found = await askFor(asking.questions, 'trends', parameters);
  return { from, to, trends: names.map(metric => trendOf(metric, found)), sql: asking.questions.sqlOf('trends', parameters) };
}

function trendOf(metric: string, found: Answered): Trends['trends'][number] {
  const rows = found.rows(row => found.text('metric', row) === metric);
  return {
    metric,
    day: rows.map(row => found.text('day', row) ?? ''),
    value: found.numbers('value', rows),
    median: found.numbers('median_28', rows),
    spread: found.numbers('spread', rows),
    z: found.numbers('z', rows),
  };
}
