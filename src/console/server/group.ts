import type { groupRoutes } from '../api/group.ts';
import type { AnswerOf, ParsedInputOf } from '../api/routes.ts';
import { addDays, dayNumber } from '../page/parts/format.ts';
import { isMetric } from '../page/parts/metrics.ts';
import { askFor } from './columns.ts';
import { findMatching } from './coverage.ts';
import type { Asking, Handlers } from './handlers.ts';
import { Refusal } from './refusal.ts';

export const groupHandlers: Handlers<keyof typeof groupRoutes> = {
  'GET group': findGroup,
};

async function findGroup({ metric, ...filters }: ParsedInputOf<'GET group'>, asking: Asking): Promise<AnswerOf<'GET group'>> {
  if (!isMetric(metric)) throw new Refusal(400, `${metric} is no metric.`, 'The metrics are those of baselines.metric.');
  const { from, to, total, page, pages, people } = await findMatching(filters, asking);
  const ids = people.map(({ id }) => id);
  const day = Array.from({ length: dayNumber(to) - dayNumber(from) + 1 }, (_, at) => addDays(from, at));
  const parameters = { metric, from, to, users: JSON.stringify(ids) };
  const found = ids.length ? await askFor(asking.questions, 'group', parameters) : undefined;
  const valueAt = new Map(found?.rows().map(row => [`${found.text('day', row)} ${found.text('id', row)}`, found.number('value', row)]));
  return {
    metric,
    from,
    to,
    day,
    total,
    page,
    pages,
    people: ids.map(id => ({ id, values: day.map(one => valueAt.get(`${one} ${id}`) ?? null) })),
    sql: asking.questions.sqlOf('group', parameters),
  };
}
