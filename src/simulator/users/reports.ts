import { addedMovement, addedStage, type Edit, reshape, shifts } from './edits.ts';
import { writeId } from './identity.ts';
import { type Period, recordPeriod } from './periods.ts';
import { keyOf } from './person.ts';
import { Random, round } from './random.ts';
import { AWAKE, DEEP, EPOCH, LIGHT, REM, reanalyse, SHORTEST, withLeastSleep } from './stages.ts';
import type { UserModel } from './user-model.ts';

/** A sleep period as it is reported: what the ring saw, after later analyses and the user's edits. */
export interface SleepReport extends Omit<Period, 'kind' | 'moved'> {
  id: string;
  type: string;
  reason: string;
  /** It has not ended: this is what has come of it so far. */
  goesOn: boolean;
}

/** Ordinals of naps that were recorded besides; those of the plan are far below. */
const FIRST_RECORDED = 128;

/** The naps that edits of a day record, by those edits. */
export function recordedNaps(model: UserModel, day: number, edits: readonly Edit[]): Map<Edit, Period> {
  const naps = new Map<Edit, Period>();
  for (const edit of edits) {
    if (edit.kind !== 'record-nap') continue;
    const kind = model.zone.local(edit.end).day === day ? 'sleep' : 'late_nap';
    naps.set(edit, recordPeriod(model, edit, { kind, day, ordinal: FIRST_RECORDED + naps.size }));
  }
  return naps;
}

/** The sleeps of a day as far as the ring had recorded them at its last sync, after the day's edits, in their order. */
export function sleepReports(model: UserModel, day: number, edits: readonly Edit[], synced: number): SleepReport[] {
  const { person } = model;
  let reports = model
    .periodsOf(day)
    .flatMap(period => soFar(period, synced) ?? [])
    .map(report);
  let version = 0;
  const naps = recordedNaps(model, day, edits);
  for (const edit of edits) {
    if (edit.kind === 'reanalyse-day') {
      version++;
      reports = reports.map(analyseAgain);
      continue;
    }
    if (edit.kind === 'record-nap') {
      reports = [...reports, report({ ...naps.get(edit)!, goesOn: false })];
      continue;
    }
    reports = reports.flatMap(report => {
      if (report.id !== edit.id) return report;
      if (edit.kind === 'delete-sleep') return [];
      return edit.kind === 'retype-sleep' ? { ...report, type: edit.type } : moveBedtime(report, edit);
    });
  }
  return reports.map(confirmed);

  function report({ kind, moved, ...period }: Period & { goesOn: boolean }): SleepReport {
    const random = new Random(keyOf(person, day, 'analysis', period.ordinal));
    const background = random.chance(0.5) ? 'background_sleep_analysis' : 'background_created_foreground_updated';
    return {
      ...period,
      id: writeId(person.seed, { person: person.index, kind: 'sleep', day, ordinal: period.ordinal }),
      type: kind,
      reason: moved ? 'bedtime_edit' : random.chance(0.75) ? 'foreground_sleep_analysis' : background,
    };
  }

  function analyseAgain(report: SleepReport): SleepReport {
    const stages = reanalyse(new Random(keyOf(person, day, 'reanalysis', report.ordinal * 1000 + version)), report.stages);
    return { ...report, stages, reason: 'background_created_foreground_updated' };
  }

  function moveBedtime(report: SleepReport, edit: { startShift: number; endShift: number }): SleepReport {
    const { before, after } = shifts(edit, report.stages.length);
    const random = new Random(keyOf(person, day, 'moved bedtime', report.ordinal));
    const stages = Uint8Array.from(reshape([...report.stages], before, after, addedStage));
    const movement = Uint8Array.from(reshape([...report.movement], before, after, addedMovement(random)));
    const samplesBefore = before / 10;
    const samplesAfter = Math.ceil(stages.length / 10) - report.pulse.heartRate.length - samplesBefore;
    const heartRate = reshape(report.pulse.heartRate, samplesBefore, samplesAfter, () => null);
    const hrv = reshape(report.pulse.hrv, samplesBefore, samplesAfter, () => null);
    const [start, end] = [report.start - before * EPOCH, report.end + after * EPOCH];
    return { ...report, start, end, stages, movement, pulse: { heartRate, hrv }, reason: 'bedtime_edit' };
  }
}

/** What a sync at a moment shows of a sleep: all of it, a night that goes on as far as it has come, of a nap nothing before it is over. */
function soFar(period: Period, synced: number): (Period & { goesOn: boolean }) | undefined {
  if (period.end <= synced) return { ...period, goesOn: false };
  const epochs = Math.floor((synced - period.start) / EPOCH);
  if (period.kind !== 'long_sleep' || epochs < SHORTEST) return undefined;
  const samples = Math.floor(epochs / 10);
  const { heartRate, hrv } = period.pulse;
  return {
    ...period,
    end: period.start + epochs * EPOCH,
    stages: period.stages.slice(0, epochs),
    movement: period.movement.slice(0, epochs),
    pulse: { heartRate: heartRate.slice(0, samples), hrv: hrv.slice(0, samples) },
    goesOn: true,
  };
}

/** A confirmed nap has the sleep that makes it one, whatever an analysis or an edit left of it. */
function confirmed(report: SleepReport): SleepReport {
  return report.type === 'sleep' || report.type === 'late_nap' ? { ...report, stages: withLeastSleep(report.stages) } : report;
}

/** Whether a sleep counts in the scores of its day. */
export const contributes = ({ type, goesOn }: SleepReport) => !goesOn && (type === 'long_sleep' || type === 'sleep' || type === 'late_nap');

/** The main sleep of a day: the longest that counts without a word from the user. */
export function mainSleep(reports: readonly SleepReport[]): SleepReport | undefined {
  const long = reports.filter(report => report.type === 'long_sleep' && !report.goesOn);
  return long.reduce<SleepReport | undefined>((a, b) => (a && a.end - a.start >= b.end - b.start ? a : b), undefined);
}

/** What follows from the strings and samples of a sleep, durations in seconds. */
export interface SleepTotals {
  deep: number;
  light: number;
  rem: number;
  awake: number;
  asleep: number;
  inBed: number;
  latency: number;
  /** Percent. */
  efficiency: number;
  restlessPeriods: number;
  averageHeartRate: number | undefined;
  lowestHeartRate: number | undefined;
  averageHrv: number | undefined;
  /** How long before the end the heart beat slowest, seconds. */
  recovery: number;
}

export function totalsOf({ stages, movement, pulse }: Pick<SleepReport, 'stages' | 'movement' | 'pulse'>): SleepTotals {
  const epochs = [0, 0, 0, 0, 0];
  for (const stage of stages) epochs[stage] = (epochs[stage] ?? 0) + 1;
  const seconds = (stage: number) => (epochs[stage] ?? 0) * EPOCH;
  const inBed = stages.length * EPOCH;
  const asleep = inBed - seconds(AWAKE);
  const first = stages.findIndex(stage => stage !== AWAKE);
  let restlessPeriods = 0;
  movement.forEach((digit, i) => {
    if (digit > 1 && !((movement[i - 1] ?? 0) > 1)) restlessPeriods++;
  });
  const beats = pulse.heartRate.filter(item => item !== null);
  const hrv = pulse.hrv.filter(item => item !== null);
  const lowest = beats.length ? Math.min(...beats) : undefined;
  return {
    deep: seconds(DEEP),
    light: seconds(LIGHT),
    rem: seconds(REM),
    awake: seconds(AWAKE),
    asleep,
    inBed,
    latency: (first < 0 ? stages.length : first) * EPOCH,
    efficiency: Math.round((100 * asleep) / inBed),
    restlessPeriods,
    averageHeartRate: beats.length ? round(mean(beats), 3) : undefined,
    lowestHeartRate: lowest,
    averageHrv: hrv.length ? Math.round(mean(hrv)) : undefined,
    recovery: lowest === undefined ? 0 : (pulse.heartRate.length - pulse.heartRate.indexOf(lowest)) * 300,
  };
}

export const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
