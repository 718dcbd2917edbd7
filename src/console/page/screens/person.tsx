import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { AnswerOf } from '../../api/routes.ts';
import { ask } from '../api.ts';
import { askedOfPerson, askedOfTrends } from '../asked.ts';
import '../charts/charts.css';
import type { Day } from '../charts/day-model.ts';
import { UsualTable } from '../charts/usual-chart.tsx';
import { setQuery, usePlace } from '../location.ts';
import { Button } from '../parts/button.tsx';
import { Figure } from '../parts/figure.tsx';
import { addDays, dayName, dayNumber } from '../parts/format.ts';
import { Link } from '../parts/link.tsx';
import { isMetric, NIGHT_METRICS, wordsOf } from '../parts/metrics.ts';
import { Sentence } from '../parts/sentence.tsx';
import { Shown } from '../parts/state.tsx';
import { type Answered, useAnswer } from '../parts/use-answer.ts';
import { DayPart } from './day-part.tsx';
import { NightCard } from './night-card.tsx';
import './person.css';
import { Trends } from './trends-part.tsx';

type Night = AnswerOf<'GET people/:id/night/:day'>;

/** One person: a night against the usual, and all that leads there. */
export function Person({ id }: { id: string }) {
  const { query } = usePlace();
  const asked = askedOfPerson(id, query);
  const night = useAnswer('GET people/:id/night/:day', asked);
  const day = useAnswer('GET people/:id/day/:day', asked);
  const trends = useTrends(id, query);
  return (
    <>
      {!night.answer && night.error && (
        <h1>
          {id} · <Link to="/">Overview</Link>
        </h1>
      )}
      <Shown of={night}>{answer => <Whole night={answer} day={day} trends={trends} at={stepsFrom(answer, asked.day)} />}</Shown>
    </>
  );
}

/** Nothing else is asked as long as the range has the day that is shown. */
function useTrends(id: string, query: URLSearchParams): Answered<AnswerOf<'GET people/:id/trends'>> {
  const wanted = askedOfTrends(id, query);
  const asked = useRef(wanted);
  const range = useRef<{ from: string; to: string } | undefined>(undefined);
  const isSame = asked.current.metrics === wanted.metrics && asked.current.days === wanted.days;
  const has = range.current && range.current.from <= wanted.day && wanted.day <= range.current.to;
  if (!isSame || !has) asked.current = wanted;
  const trends = useAnswer('GET people/:id/trends', asked.current);
  range.current = trends.answer;
  return trends;
}

/** The day from which one steps: the one that is asked for, be it shown yet or not, so that no press is lost where answers are slow. */
const stepsFrom = ({ newest_night, last_day }: Night, asked: string) =>
  Number.isNaN(dayNumber(asked)) ? (newest_night ?? last_day) : asked;

interface WholeProps {
  night: Night;
  day: Answered<Day>;
  trends: Answered<AnswerOf<'GET people/:id/trends'>>;
  at: string;
}

function Whole({ night, day, trends, at }: WholeProps) {
  useDayKeys(night, at);
  useNeighbours(night);
  useEffect(() => {
    document.title = `${night.id}, ${dayName(night.day)} – Ringneck`;
    return () => {
      document.title = 'Ringneck';
    };
  }, [night.id, night.day]);
  return (
    <>
      <Head night={night} at={at} />
      <Sentence of={night.sentence} />
      <div class="person-grid">
        <NightCard key={`${night.id} ${night.day}`} night={night} />
        <UsualCard night={night} />
      </div>
      <Trends id={night.id} day={night.day} answer={trends} />
      <DayPart night={night} day={day} />
    </>
  );
}

/** What the server has been asked before it answers at once: the days to which one steps next. */
function useNeighbours({ id, day, first_day, last_day }: Night): void {
  useEffect(() => {
    const asking = new AbortController();
    const timer = setTimeout(() => {
      for (const next of [addDays(day, -1), addDays(day, 1)].filter(one => one >= first_day && one <= last_day)) {
        ask('GET people/:id/night/:day', { id, day: next }, asking.signal).catch(() => undefined);
        ask('GET people/:id/day/:day', { id, day: next }, asking.signal).catch(() => undefined);
      }
    }, 300);
    return () => {
      clearTimeout(timer);
      asking.abort();
    };
  }, [id, day, first_day, last_day]);
}

const show = (day: string | null) => setQuery({ day });

function Head({ night: { id, day, first_day, last_day, newest_night }, at }: { night: Night; at: string }) {
  const newest = newest_night ?? last_day;
  return (
    <div class="person-head">
      <h1>
        {id} · {dayName(day)}
      </h1>
      <span class="second">{day.slice(0, 4)}</span>
      <Button isOff={at <= first_day} aria-label="The day before" onPress={() => show(addDays(at, -1))}>
        ‹ <kbd>←</kbd>
      </Button>
      <Button isOff={at >= last_day} aria-label="The day after" onPress={() => show(addDays(at, 1))}>
        <kbd>→</kbd> ›
      </Button>
      <Button isOff={at === newest} onPress={() => show(null)}>
        Newest
      </Button>
      <Link to={`/people/${encodeURIComponent(id)}/raster`}>Night after night</Link>
    </div>
  );
}

/** `←` and `→` step by a day, with Shift by a week; Home goes to the newest night. */
function useDayKeys({ first_day, last_day }: Night, at: string): void {
  // After the paint a press of the same frame would still step from the day before it.
  useLayoutEffect(() => {
    const step = (days: number) => {
      const to = addDays(at, days);
      const within = to < first_day ? first_day : to > last_day ? last_day : to;
      if (within !== at) show(within);
    };
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.altKey || event.ctrlKey || event.metaKey || isTyping(event.target)) return;
      const days = event.shiftKey ? 7 : 1;
      if (event.key === 'ArrowLeft') step(-days);
      else if (event.key === 'ArrowRight') step(days);
      else if (event.key === 'Home') show(null);
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, [at, first_day, last_day]);
}

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && target.closest('input, select, textarea, [contenteditable], .rows, dialog') !== null;

function UsualCard({ night: { id, day, usual, unusual, sql } }: { night: Night }) {
  const rows = usual.filter(({ metric }) => isMetric(metric) && NIGHT_METRICS.includes(metric));
  const marked = rows.filter(({ z }) => z !== null && Math.abs(z) >= 2).length;
  return (
    <Figure
      title="Against the usual"
      note="28 nights before"
      finding={
        <>
          {unusual.length ? '' : marked ? 'Nothing that is called unusual. ' : 'As usual. '}Band: median ± 1.48 times the median absolute
          deviation of the 28 nights before. ◆ from 2 of these on. No diagnosis.
        </>
      }
      table={() => [
        { name: 'metric', values: rows.map(({ metric }) => (isMetric(metric) ? wordsOf(metric).name : metric)) },
        { name: 'value', values: rows.map(({ value }) => value) },
        { name: 'usual (median of 28)', values: rows.map(({ median }) => median) },
        { name: 'band, to either side', values: rows.map(({ spread }) => spread) },
        { name: 'robust z', values: rows.map(({ z }) => z) },
        { name: 'nights', values: rows.map(({ nights }) => nights) },
        { name: 'note', values: rows.map(({ note }) => note || null) },
      ]}
      sql={sql.usual}
      file={`${id}-${day}-usual`}
    >
      <UsualTable usual={rows} metrics={NIGHT_METRICS} />
    </Figure>
  );
}
