import type { AnswerOf } from '../../api/routes.ts';
import { CalendarChart, CalendarLegend, RasterChart, RasterLegend, useModel } from '../charts/raster-chart.tsx';
import { calendarModel, rasterModel } from '../charts/raster-model.ts';
import { go, setQuery, usePlace } from '../location.ts';
import type { DataTable } from '../parts/data-table.ts';
import { DateField } from '../parts/date-field.tsx';
import { Figure } from '../parts/figure.tsx';
import { localText, offsetName, shortDay } from '../parts/format.ts';
import { Link } from '../parts/link.tsx';
import { Sentence } from '../parts/sentence.tsx';
import { Shown } from '../parts/state.tsx';
import { useAnswer } from '../parts/use-answer.ts';

type Answer = AnswerOf<'GET people/:id/raster'>;

/** Rows from which on the stages of a night are noise. */
const MOST_STAGES = 180;

/** Many nights of one person. */
export function Raster({ id }: { id: string }) {
  const { query } = usePlace();
  const [from, to] = [query.get('from') ?? undefined, query.get('to') ?? undefined];
  const raster = useAnswer('GET people/:id/raster', { id, ...(from && { from }), ...(to && { to }) });
  return (
    <>
      {!raster.answer && raster.error && (
        <>
          <Heading id={id} />
          <div class="raster-controls">
            <Days from={from ?? ''} to={to ?? ''} />
          </div>
        </>
      )}
      <Shown of={raster}>{answer => <Whole raster={answer} />}</Shown>
    </>
  );
}

const pathOf = (id: string) => `/people/${encodeURIComponent(id)}`;

function Whole({ raster }: { raster: Answer }) {
  const { query } = usePlace();
  const { id, from, to, sentence, sql } = raster;
  const clock = query.get('clock') === 'utc' ? 'utc' : 'own';
  const isDouble = query.get('double') !== 'no';
  const model = useModel(answer => rasterModel(answer, clock), raster, clock);
  const days = useModel(calendarModel, raster);
  const mayStages = model.rows.length <= MOST_STAGES;
  const isStages = mayStages && query.get('show') !== 'asleep';
  const open = (day: string) => go(`${pathOf(id)}?day=${day}`);
  const period = `${shortDay(from)} ${from.slice(0, 4)} to ${shortDay(to)} ${to.slice(0, 4)}`;
  const nights = model.rows.filter(({ hasNight }) => hasNight).length;
  const scored = raster.scores.day.length;
  return (
    <>
      <Heading id={id} />
      <Sentence of={sentence} />
      <Controls {...{ from, to, clock, isDouble, isStages, mayStages }} />
      <div class="raster-cards">
        <Figure
          title={isDouble ? 'Sleep raster, double-plotted' : 'Sleep raster'}
          note={period}
          finding={`${nights} nights, each from noon to noon ${clock === 'own' ? 'by the clock with which it began' : 'in UTC'}${isDouble ? '; the right half is the night after' : ''}. Press a night to open it.`}
          table={() => rasterTable(raster)}
          sql={sql.raster}
          file={`${id}-${from}-${to}-raster`}
        >
          <RasterLegend isStages={isStages} />
          <RasterChart {...{ model, isStages, isDouble }} onOpen={open} />
        </Figure>
        <Figure
          title="Sleep scores"
          note="one square a day, mean of each month below"
          finding={`${scored} of ${days.length} days have a score.`}
          table={() => [
            { name: 'day', values: days.map(({ day }) => day) },
            { name: 'sleep score', values: days.map(({ score }) => score) },
          ]}
          sql={sql.scores}
          file={`${id}-${from}-${to}-scores`}
        >
          <CalendarLegend />
          <CalendarChart days={days} onOpen={open} />
        </Figure>
      </div>
    </>
  );
}

const Heading = ({ id }: { id: string }) => (
  <h1>
    <Link to={pathOf(id)}>{id}</Link> · night after night
  </h1>
);

/** Also where the days that were asked for cannot be answered: then others can be chosen. */
const Days = ({ from, to }: { from: string; to: string }) => (
  <>
    <DateField label="From" value={from} onChoose={day => setQuery({ from: day }, { replace: true })} />
    <DateField label="to" value={to} onChoose={day => setQuery({ to: day }, { replace: true })} />
  </>
);

interface ControlsProps {
  from: string;
  to: string;
  clock: string;
  isDouble: boolean;
  isStages: boolean;
  mayStages: boolean;
}

function Controls({ from, to, clock, isDouble, isStages, mayStages }: ControlsProps) {
  return (
    <div class="raster-controls">
      <Days from={from} to={to} />
      <label>
        Show{' '}
        <select
          value={isStages ? 'stages' : 'asleep'}
          onChange={({ currentTarget: { value } }) => setQuery({ show: value === 'asleep' ? value : null })}
        >
          <option value="stages" disabled={!mayStages}>
            Stages{mayStages ? '' : ` (up to ${MOST_STAGES} days)`}
          </option>
          <option value="asleep">Asleep and awake</option>
        </select>
      </label>
      <label>
        Clock{' '}
        <select value={clock} onChange={({ currentTarget: { value } }) => setQuery({ clock: value === 'utc' ? value : null })}>
          <option value="own">their own</option>
          <option value="utc">UTC</option>
        </select>
      </label>
      <label>
        <input
          type="checkbox"
          checked={isDouble}
          onChange={({ currentTarget: { checked } }) => setQuery({ double: checked ? null : 'no' })}
        />{' '}
        Double plot
      </label>
    </div>
  );
}

function rasterTable({ sleeps }: Answer): DataTable {
  const offsetAt = (at: number) => sleeps.offset[at] ?? 0;
  const endOffsetAt = (at: number) => sleeps.end_offset[at] ?? 0;
  return [
    { name: 'day', values: sleeps.day },
    { name: 'sleep', values: sleeps.is_main.map(isMain => (isMain ? 'night' : 'nap')) },
    { name: 'into bed, local', values: sleeps.start.map((start, at) => localText(start, offsetAt(at))) },
    { name: 'out of bed, local', values: sleeps.end.map((end, at) => localText(end, endOffsetAt(at))) },
    { name: 'offset', values: sleeps.start.map((_, at) => offsetName(offsetAt(at))) },
    { name: 'offset at the end', values: sleeps.end.map((_, at) => offsetName(endOffsetAt(at))) },
  ];
}
