import type { nightRoutes } from '../api/night.ts';
import type { AnswerOf } from '../api/routes.ts';
import { DAY_METRICS, isMetric, METRICS } from '../page/parts/metrics.ts';
import { type Answered, askFor } from './columns.ts';
import type { Asking, Handlers } from './handlers.ts';
import { noteOf, type Sentence, tellMissing, tellNight } from './night-words.ts';
import { dayAt } from './people-judged.ts';
import { findPerson } from './person.ts';
import { askUsual, EVERY_METRIC } from './trends.ts';
import { unusualOf } from './unusual.ts';

type Night = AnswerOf<'GET people/:id/night/:day'>;
type Sleep = Night['sleeps'][number];

export const nightHandlers: Handlers<keyof typeof nightRoutes> = {
  'GET people/:id/night/:day': findNight,
};

async function findNight({ id, day: given }: { id: string; day: string }, asking: Asking): Promise<Night> {
  const { questions } = asking;
  const person = await findPerson(id, asking);
  const day = given === 'newest' ? person.newest : given;
  const parameters = { user: id, day };
  const [sleeps, usual] = await Promise.all([findSleeps(parameters, asking), findUsual({ id, day, last: person.last }, asking)]);
  const missing = sleeps.some(({ is_main }) => is_main) ? null : await findMissing(parameters, sleeps.length, asking);
  return {
    id,
    day,
    first_day: person.first,
    last_day: person.last,
    newest_night: person.newestNight,
    sentence: tell({ sleeps, usual, missing, whose: asking.session.person === id ? 'you' : id }),
    sleeps,
    missing,
    usual,
    unusual: unusualOf(usual).map(({ metric }) => metric),
    sql: {
      night: questions.sqlOf('night-series', parameters),
      usual: questions.sqlOf('trends', { user: id, metrics: EVERY_METRIC, from: day, to: day }),
    },
  };
}

function tell({ sleeps, usual, missing, whose }: Pick<Night, 'sleeps' | 'usual' | 'missing'> & { whose: string }): Sentence {
  const main = sleeps.find(({ is_main }) => is_main);
  if (!main) return [{ text: 'No night. ', tone: 'answer' }, ...(missing ? [{ text: missing, tone: 'plain' as const }] : [])];
  return tellNight({ asleep: main.asleep, latency: main.latency, offsetChange: main.end_offset - main.start_offset, usual, whose });
}

interface OfDay {
  user: string;
  day: string;
}

async function findSleeps(parameters: OfDay, { questions }: Asking): Promise<Sleep[]> {
  const [sleeps, stages, series] = await Promise.all([
    askFor(questions, 'night-sleeps', parameters),
    askFor(questions, 'night-stages', parameters),
    askFor(questions, 'night-series', parameters),
  ]);
  return sleeps.rows().map(row => sleepAt(row, sleeps, stages, series));
}

function sleepAt(row: number, sleeps: Answered, stages: Answered, series: Answered): Sleep {
  const sleepId = sleeps.text('sleep_id', row) ?? '';
  const spans = stages.rows(span => stages.text('sleep_id', span) === sleepId);
  const start = sleeps.number('start', row) ?? 0;
  const offset = sleeps.number('start_offset', row) ?? 0;
  const of = (name: string) => sleeps.number(name, row);
  const seriesOf = (name: string) => {
    const samples = series.rows(at => series.text('series', at) === name && series.number('sk', at) === sleeps.number('sk', row));
    const interval = of(`${name}_interval`);
    if (!samples.length || !interval) return null;
    return { start: of(`${name}_start`) ?? start, interval, values: series.numbers('value', samples) };
  };
  return {
    sleep_id: sleepId,
    type: sleeps.text('type', row),
    is_main: sleeps.isTrue('main', row),
    start,
    start_offset: offset,
    end: of('end') ?? start,
    end_offset: of('end_offset') ?? offset,
    asleep: of('asleep'),
    in_bed: of('in_bed'),
    latency: of('latency'),
    efficiency: of('efficiency'),
    average_heart_rate: of('average_heart_rate'),
    lowest_heart_rate: of('lowest_heart_rate'),
    average_hrv: of('average_hrv'),
    average_breath: of('average_breath'),
    stages: {
      start: spans.map(span => stages.number('start', span) ?? 0),
      seconds: spans.map(span => stages.number('seconds', span) ?? 0),
      stage: stages.texts('stage', spans),
    },
    heart_rate: seriesOf('heart_rate'),
    hrv: seriesOf('hrv'),
    movement: sleeps.text('movement', row) ?? '',
  };
}

async function findUsual(wanted: Parameters<typeof askUsual>[0], { questions }: Asking): Promise<Night['usual']> {
  const { found, rowOf } = await askUsual(wanted, questions);
  return Object.keys(METRICS).map(metric => {
    const row = rowOf.get(metric) ?? -1;
    const one = {
      metric,
      value: found.number('value', row),
      median: found.number('median_28', row),
      spread: found.number('spread', row),
      z: found.number('z', row),
      nights: found.number('nights', row) ?? 0,
    };
    return { ...one, note: noteOf(one, isMetric(metric) && DAY_METRICS.includes(metric)) };
  });
}

async function findMissing({ user, day }: OfDay, naps: number, { questions, now }: Asking): Promise<string> {
  const [found, clocks] = await Promise.all([
    askFor(questions, 'night-missing', { user, from: day, to: day }),
    askFor(questions, 'day-clocks', { user }),
  ]);
  return tellMissing({
    state: found.text('state'),
    reason: found.text('reason'),
    nonWear: found.number('non_wear_time'),
    isWorn: !found.isTrue('ring_not_worn'),
    unended: found.number('unended') ?? 0,
    naps,
    isToday: day >= dayAt(now() / 1000, clocks.number('utc_offset', clocks.count - 1) ?? 0),
  });
}
