import {
  add,
  bounded,
  deviation,
  get,
  groupBy,
  known,
  mean,
  median,
  moment,
  of,
  type Row,
  SECOND,
  type Stored,
  samples,
} from './views-oracle.ts';

const AS_IT_CAME = `type time_in_bed total_sleep_duration awake_time deep_sleep_duration light_sleep_duration rem_sleep_duration latency
  efficiency restless_periods average_heart_rate lowest_heart_rate average_hrv average_breath low_battery_alert ring_id`.split(/\s+/);

const isHidden = ({ document }: Stored) => ['deleted', 'rest'].includes(get(document, 'type'));

function sleepRow({ user, sk, document }: Stored): Row {
  const [start, end] = [moment(document, 'bedtime_start'), moment(document, 'bedtime_end')];
  const middle = start && end && (start.micros + end.micros) / 2;
  return {
    user_id: user,
    day: get(document, 'day'),
    sleep_id: get(document, 'id'),
    bedtime_start: start?.micros ?? null,
    bedtime_start_offset: start?.offset ?? null,
    bedtime_end: end?.micros ?? null,
    bedtime_end_offset: end?.offset ?? null,
    bedtime_start_local: start && add(start.micros, start.offset),
    bedtime_end_local: end && add(end.micros, end.offset),
    midpoint_local: end && add(middle, end.offset),
    offset_change: start && end && end.offset - start.offset,
    temperature_deviation: get(document, 'readiness', 'temperature_deviation'),
    sk,
    ...Object.fromEntries(AS_IT_CAME.map(key => [key, get(document, key)])),
  };
}

/** Descending by each measure in turn; what is null comes last. */
function longest(sleeps: readonly Row[]): Row | undefined {
  const measures = (row: Row) => [row.total_sleep_duration, row.time_in_bed, row.bedtime_start && -row.bedtime_start, row.sk] as number[];
  return [...sleeps].sort((a, b) => {
    for (const [i, value] of measures(a).entries()) {
      const other = measures(b)[i]!;
      if (value !== other) return (other ?? Number.NEGATIVE_INFINITY) > (value ?? Number.NEGATIVE_INFINITY) ? 1 : -1;
    }
    return 0;
  })[0];
}

function isAtNight(row: Row): boolean {
  if (row.midpoint_local === null) return false;
  const second = ((((row.midpoint_local as number) / SECOND) % 86_400) + 86_400) % 86_400;
  return second >= 21 * 3600 || second < 9 * 3600;
}

/** Also which of a day is the main one, and which are naps. */
export function countedSleeps(stored: readonly Stored[]): Row[] {
  const counted = of(stored, 'sleep')
    .filter(version => !isHidden(version))
    .map(sleepRow)
    .filter(row => row.bedtime_end !== null);
  return [...groupBy(counted, row => `${row.day} ${row.user_id}`).values()].flatMap(sleeps => {
    const others = sleeps.filter(row => row.type !== 'late_nap');
    const main =
      longest(sleeps.filter(row => row.type === 'long_sleep')) ??
      longest(others.filter(row => (row.time_in_bed as number) > 10_800)) ??
      longest(others.filter(isAtNight));
    const overlapsMain = (row: Row) =>
      main !== undefined &&
      row.bedtime_start !== null &&
      main.bedtime_start !== null &&
      (row.bedtime_start as number) < (main.bedtime_end as number) &&
      (main.bedtime_start as number) < (row.bedtime_end as number);
    return sleeps.map(row => ({ ...row, main: row === main, nap: row !== main && !overlapsMain(row) }));
  });
}

const without = (rows: readonly Row[]) => rows.map(({ main, nap, ...rest }) => rest as Row);

export const nights = (stored: readonly Stored[]) => without(countedSleeps(stored).filter(row => row.main));
export const naps = (stored: readonly Stored[]) => without(countedSleeps(stored).filter(row => row.nap));

const STAGES: Record<string, string> = { 1: 'deep', 2: 'light', 3: 'rem', 4: 'awake' };
const MOVEMENTS: Record<string, string> = { 1: 'none', 2: 'restless', 3: 'tossing', 4: 'active' };

/** Rounded as DuckDB does it, halves to the even one. */
const whole = (value: number) => (value % 1 === 0.5 ? 2 * Math.round(value / 2) : Math.round(value));

/** The characters of a string, each with its time; none reaches beyond the end of the sleep. */
function timed({ user, document }: Stored, text: string, step: number, label: string, labels: Record<string, string>): Row[] {
  const [start, end] = [moment(document, 'bedtime_start'), moment(document, 'bedtime_end')];
  const codes = [...text];
  return codes.map((code, position) => {
    const ts = start && add(start.micros, position * step);
    const left = start && end ? (end.micros - start.micros) / SECOND - position * step : step;
    return {
      user_id: user,
      day: get(document, 'day'),
      sleep_id: get(document, 'id'),
      position,
      ts,
      utc_offset: start?.offset ?? null,
      seconds: whole(Math.max(0, Math.min(step, left))),
      [label]: labels[code] ?? null,
      code,
    };
  });
}

export function sleepStages(stored: readonly Stored[]): Row[] {
  return of(stored, 'sleep')
    .filter(version => !isHidden(version))
    .flatMap(version => {
      const fine = get(version.document, 'sleep_phase_30_sec');
      const coarse = get(version.document, 'sleep_phase_5_min');
      const step = fine ? 30 : 300;
      return timed(version, fine ? fine : (coarse ?? ''), step, 'stage', STAGES).map(row => ({ ...row, step }) as Row);
    });
}

/** Equal digits side by side are one span; a sign that is no digit is one by itself. */
export function sleepStageSpans(stored: readonly Stored[]): Row[] {
  const spans: Row[] = [];
  for (const { position, ...row } of sleepStages(stored)) {
    const last = spans.at(-1);
    const isSameSleep = last !== undefined && position !== 0;
    if (isSameSleep && last.code === row.code && /\d/.test(row.code as string))
      last.seconds = (last.seconds as number) + (row.seconds as number);
    else spans.push({ ...row, span: isSameSleep ? (last.span as number) + 1 : 1 });
  }
  return spans;
}

export const sleepMovement = (stored: readonly Stored[]) =>
  of(stored, 'sleep')
    .filter(version => !isHidden(version))
    .flatMap(version => timed(version, get(version.document, 'movement_30_sec') ?? '', 30, 'movement', MOVEMENTS));

export function hrvNights(stored: readonly Stored[]): Row[] {
  const versions = new Map(of(stored, 'sleep').map(version => [version.sk, version]));
  return nights(stored).map(night => {
    const all = samples(versions.get(night.sk as number)!.document, 'hrv');
    const valued = all.filter(sample => sample.value !== null) as { ts: number; value: number }[];
    const values = valued.map(({ value }) => value);
    const middle = ((night.bedtime_start as number) + (night.bedtime_end as number)) / 2;
    const half = (isFirst: boolean) =>
      valued.filter(({ ts }) => night.bedtime_start !== null && ts < middle === isFirst).map(({ value }) => value);
    return {
      user_id: night.user_id!,
      day: night.day!,
      sleep_id: night.sleep_id!,
      average_hrv: night.average_hrv!,
      samples: all.length,
      samples_with_value: values.length,
      mean_hrv: mean(values),
      median_hrv: median(values),
      sd_hrv: deviation(bounded(known(values))),
      lowest_hrv: values.length ? Math.min(...values) : null,
      highest_hrv: values.length ? Math.max(...values) : null,
      first_half_hrv: mean(half(true)),
      second_half_hrv: mean(half(false)),
    };
  });
}
