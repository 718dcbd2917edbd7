import { useMemo } from 'preact/hooks';
import { Figure } from '../../parts/figure.tsx';
import { CHARTS, type Chart, type ChartKind, type Data, fill, numberOf, propose, slots, sortOf, whyNot } from './propose.ts';
import { type Result, rowsText } from './result.ts';
import { ResultChart } from './result-chart.tsx';
import { findingOf, modelOf } from './result-model.ts';

const NAMES: Readonly<Record<ChartKind, string>> = {
  line: 'Line',
  points: 'Points',
  bars: 'Bars',
  heat: 'Heat map',
  histogram: 'Histogram',
};

interface ChartCardProps {
  result: Result;
  sql: string;
  /** What was chosen instead of what the types propose. */
  chosen: Chart | undefined;
  onChoose(chart: Chart | null): void;
}

/** A chart that the types of the columns propose, and that can be changed. */
export function ChartCard({ result, sql, chosen, onChoose }: ChartCardProps) {
  const proposed = useMemo(() => propose(result), [result]);
  const possible = useMemo(() => CHARTS.flatMap(kind => fill(kind, result) ?? []), [result]);
  const chart = chosen && fits(chosen, result) ? chosen : proposed;
  if (!possible.length || result.rows < 2) return null;
  const choice = (
    <fieldset class="sql-choice">
      <legend class="unseen">Chart</legend>
      {possible.map(one => (
        <button
          key={one.kind}
          type="button"
          aria-pressed={one.kind === chart?.kind}
          onClick={() => onChoose(one.kind === proposed?.kind ? null : one)}
        >
          {NAMES[one.kind]}
        </button>
      ))}
    </fieldset>
  );
  if (!chart) {
    return (
      <section class="card">
        <h2>Chart</h2>
        {choice}
        <p class="second">The columns propose none: choose one, or ask for a date, a text or another number beside the number.</p>
      </section>
    );
  }
  return (
    <>
      {choice}
      <Slots chart={chart} data={result} onChoose={onChoose} />
      <Drawn chart={chart} result={result} sql={sql} isProposed={chart === proposed} />
    </>
  );
}

function Drawn({ chart, result, sql, isProposed }: { chart: Chart; result: Result; sql: string; isProposed: boolean }) {
  const problem = useMemo(() => whyNot(chart, result), [chart, result]);
  const model = useMemo(() => (problem === undefined ? modelOf(chart, result) : undefined), [chart, result, problem]);
  const name = (at: number | null) => (at === null ? '' : (result.columns[at]?.name ?? ''));
  const title = [name(chart.y), chart.x === null ? '' : `by ${name(chart.x)}`, chart.by === null ? '' : `and ${name(chart.by)}`]
    .filter(Boolean)
    .join(' ');
  if (!model) {
    return (
      <section class="card">
        <h2>{title}</h2>
        <p>{problem}</p>
      </section>
    );
  }
  const { cut } = result.end ?? {};
  const places = [chart.x, chart.by, chart.y].filter(at => at !== null);
  const table = () => places.map(at => ({ name: name(at), values: cellsOf(result, at) }));
  const finding = `${cut ? `Of the first ${rowsText(result.rows)} only: the result was cut. ` : ''}${findingOf(model)}`;
  return (
    <Figure
      title={title}
      note={isProposed ? 'proposed from the types of the columns' : undefined}
      finding={finding}
      table={table}
      sql={sql}
      file={`${title}${cut ? `-first-${result.rows}-rows` : ''}`}
    >
      <ResultChart model={model} />
    </Figure>
  );
}

/** Numbers as numbers, where JavaScript holds them. */
function cellsOf({ columns, values }: Data, at: number): (string | number | null)[] {
  const cells = values[at] ?? [];
  if (!columns[at]?.numeric) return [...cells];
  return cells.map(text => {
    const number = numberOf(text);
    return number === null || Math.abs(number) > Number.MAX_SAFE_INTEGER ? text : number;
  });
}

/** Which columns are drawn. */
function Slots({ chart, data, onChoose }: { chart: Chart; data: Data; onChoose(chart: Chart): void }) {
  const { x, by, needsBy } = slots[chart.kind];
  const of = (sorts: readonly string[]) =>
    data.columns.flatMap((column, at) => (sorts.includes(sortOf(column)) ? [{ at, name: column.name }] : []));
  const choices = [
    { key: 'y' as const, label: chart.kind === 'histogram' ? 'Number' : 'Value', options: of(['number']), isOptional: false },
    ...(x ? [{ key: 'x' as const, label: 'Along', options: of(x), isOptional: false }] : []),
    ...(by ? [{ key: 'by' as const, label: 'For each', options: of(by), isOptional: !needsBy }] : []),
  ];
  return (
    <p class="sql-slots">
      {choices
        .filter(({ options, isOptional }) => options.length > (isOptional ? 0 : 1))
        .map(({ key, label, options, isOptional }) => (
          <label key={key}>
            {label}{' '}
            <select
              value={String(chart[key] ?? '')}
              onChange={({ currentTarget: { value } }) => onChoose({ ...chart, [key]: value === '' ? null : Number(value) })}
            >
              {isOptional && <option value="">one line for all</option>}
              {options.map(option => (
                <option key={option.at} value={String(option.at)}>
                  {option.name}
                </option>
              ))}
            </select>
          </label>
        ))}
    </p>
  );
}

/** A link may name columns that this result has not. */
function fits({ kind, x, y, by }: Chart, { columns }: Data): boolean {
  const is = (at: number | null, sorts: readonly string[] | null) => {
    const column = at === null ? undefined : columns[at];
    return sorts === null ? at === null : column !== undefined && sorts.includes(sortOf(column));
  };
  const slot = slots[kind];
  return is(y, ['number']) && is(x, slot.x) && ((by === null && !slot.needsBy) || is(by, slot.by));
}
