import type { AnswerOf, InputOf } from '../../api/routes.ts';
import { extentOf, type Multiple, Multiples, rangeText } from '../charts/multiples.tsx';
import { isWeekly, type Point, pointsOf } from '../charts/trend-model.ts';
import { setQuery, usePlace } from '../location.ts';
import { Figure } from '../parts/figure.tsx';
import { shortDay } from '../parts/format.ts';
import { MetricChoice } from '../parts/metric-choice.tsx';
import { DAY_METRICS, isMetric, type Metric, wordsOf } from '../parts/metrics.ts';
import { pageFile, pageText } from '../parts/pages.ts';
import { Shown } from '../parts/state.tsx';
import { useAnswer } from '../parts/use-answer.ts';

type Answer = AnswerOf<'GET group'>;
const FIRST: Metric = 'average_hrv';

/** A metric of the people of the page side by side; which one, and on whose scale, says the address. */
export function Group({ input }: { input: Omit<InputOf<'GET group'>, 'metric'> }) {
  const { query } = usePlace();
  const asked = query.get('metric') ?? FIRST;
  const group = useAnswer('GET group', { ...input, metric: isMetric(asked) ? asked : FIRST });
  return <Shown of={group}>{answer => <GroupCard answer={answer} isCommon={query.get('scale') === 'common'} />}</Shown>;
}

function GroupCard({ answer, isCommon }: { answer: Answer; isCommon: boolean }) {
  const { metric, from, to, day, sql } = answer;
  if (!isMetric(metric)) return null;
  const { name, unit } = wordsOf(metric);
  const nothing: null[] = [];
  const people = answer.people.map(
    ({ id, values }): Multiple => ({
      id,
      points: pointsOf({ metric, day, value: values, median: nothing, spread: nothing, z: nothing }, from, to),
    }),
  );
  const weekly = isWeekly(from, to);
  const extent = extentOf(people);
  return (
    <Figure
      class="coverage-group"
      title={`${name}, group`}
      note={[unit, weekly ? 'weekly means' : ''].filter(Boolean).join(', ') || undefined}
      finding={findingOf(answer, metric, extent, isCommon)}
      table={() => [
        { name: 'person', values: answer.people.flatMap(({ id }) => day.map(() => id)) },
        { name: 'day', values: answer.people.flatMap(() => day) },
        { name: unitName(metric), values: answer.people.flatMap(({ values }) => values) },
      ]}
      sql={sql}
      file={`group-${metric}-${from}-${to}${pageFile(answer)}`}
    >
      <GroupChoices metric={metric} isCommon={isCommon} />
      <Multiples
        metric={metric}
        people={people}
        common={isCommon ? extent : null}
        label={`${name} of ${people.length} people, ${shortDay(from)} to ${shortDay(to)}`}
        nameOf={(point: Point) => (weekly ? `week from ${shortDay(point.day)}` : shortDay(point.day))}
      />
    </Figure>
  );
}

function GroupChoices({ metric, isCommon }: { metric: Metric; isCommon: boolean }) {
  const choose = (name: string, value: string, usual: string) => setQuery({ [name]: value === usual ? null : value }, { replace: true });
  return (
    <form class="coverage-choices second" onSubmit={event => event.preventDefault()}>
      <MetricChoice metric={metric} choose={value => choose('metric', value, FIRST)} />
      <label>
        Scale{' '}
        <select value={isCommon ? 'common' : 'own'} onChange={({ currentTarget }) => choose('scale', currentTarget.value, 'own')}>
          <option value="own">each line its own</option>
          <option value="common">one for all</option>
        </select>
      </label>
    </form>
  );
}

const unitName = (metric: Metric) => {
  const { unit, digits } = wordsOf(metric);
  const shown = unit || (digits === 'duration' ? 's' : '');
  return shown ? `${metric} [${shown}]` : metric;
};

function findingOf(answer: Answer, metric: Metric, extent: readonly [number, number] | null, isCommon: boolean) {
  const { people } = answer;
  if (!extent) return `Nobody has a value in these days.${pageText(answer)}`;
  const known = people.filter(({ values }) => values.some(value => value !== null)).length;
  const scale = isCommon ? `one scale for all, ${rangeText(metric, extent)}` : 'each on its own scale, its range beside the name';
  const told = [
    `${known} of ${people.length} people have a value, ${rangeText(metric, extent)}; ${scale}.`,
    'At the end of each line its last value; a line breaks where there is none.',
    ...(DAY_METRICS.includes(metric) ? ['Days that are not over are left out.'] : []),
  ].join(' ');
  return told + pageText(answer);
}
