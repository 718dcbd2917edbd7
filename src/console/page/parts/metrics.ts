import { hoursAndMinutes } from './format.ts';

interface MetricWords {
  name: string;
  /** In a sentence: `breathing`, `temperature`. */
  inText: string;
  unit: string;
  /** Digits behind the point; a duration is hours and minutes. */
  digits: number | 'duration';
  isSigned?: true;
  /** What no value exceeds. */
  most?: number;
}

/** The metrics of `baselines`: what they are called, in which unit and how exactly they are told. */
export const METRICS = {
  total_sleep_duration: { name: 'Time asleep', inText: 'time asleep', unit: '', digits: 'duration' },
  average_hrv: { name: 'Night HRV', inText: 'heart rate variability', unit: 'ms', digits: 0 },
  lowest_heart_rate: { name: 'Lowest heart rate', inText: 'lowest heart rate', unit: 'bpm', digits: 0 },
  average_heart_rate: { name: 'Mean heart rate', inText: 'mean heart rate', unit: 'bpm', digits: 1 },
  average_breath: { name: 'Breathing', inText: 'breathing', unit: '/min', digits: 1 },
  temperature_deviation: { name: 'Temperature', inText: 'temperature', unit: '°C', digits: 2, isSigned: true },
  spo2_average: { name: 'Oxygen, mean', inText: 'oxygen', unit: '%', digits: 1, most: 100 },
  efficiency: { name: 'Efficiency', inText: 'efficiency', unit: '%', digits: 0, most: 100 },
  deep_sleep_duration: { name: 'Deep sleep', inText: 'deep sleep', unit: '', digits: 'duration' },
  rem_sleep_duration: { name: 'REM sleep', inText: 'REM sleep', unit: '', digits: 'duration' },
  sleep_score: { name: 'Sleep score', inText: 'sleep score', unit: '', digits: 0, most: 100 },
  readiness_score: { name: 'Readiness score', inText: 'readiness score', unit: '', digits: 0, most: 100 },
  activity_score: { name: 'Activity score', inText: 'activity score', unit: '', digits: 0, most: 100 },
  stress_high: { name: 'High stress', inText: 'time of high stress', unit: '', digits: 'duration' },
  steps: { name: 'Steps', inText: 'steps', unit: '', digits: 0 },
  active_calories: { name: 'Active energy', inText: 'active energy', unit: 'kcal', digits: 0 },
} as const satisfies Record<string, MetricWords>;

export type Metric = keyof typeof METRICS;

export const isMetric = (name: string): name is Metric => Object.hasOwn(METRICS, name);

/** What is known in the morning, and what a whole day makes. */
export const DAY_METRICS: readonly Metric[] = ['activity_score', 'stress_high', 'steps', 'active_calories'];
export const NIGHT_METRICS = Object.keys(METRICS).filter((name): name is Metric => isMetric(name) && !DAY_METRICS.includes(name));

export const wordsOf = (metric: Metric): MetricWords => METRICS[metric];

/** What is usual, from and to, as far as there can be values. */
export function bandOf(metric: Metric, median: number, spread: number): [number, number] {
  const { isSigned, most = Number.POSITIVE_INFINITY } = wordsOf(metric);
  return [isSigned ? median - spread : Math.max(0, median - spread), Math.min(most, median + spread)];
}

/** `+0.77`, `7 h 21`, `10,230`: without the unit. */
export function metricText(metric: Metric, value: number): string {
  const { digits, isSigned } = wordsOf(metric);
  if (digits === 'duration') return hoursAndMinutes(value);
  return numberText(value, digits, isSigned);
}

/** `+0.77 °C`, `17.5 /min` */
export function metricWithUnit(metric: Metric, value: number): string {
  const { unit } = wordsOf(metric);
  return unit ? `${metricText(metric, value)} ${unit}` : metricText(metric, value);
}

/** With a true minus and commas between thousands. */
export function numberText(value: number, digits = 0, isSigned = false): string {
  const [whole = '', rest] = Math.abs(value).toFixed(digits).split('.');
  const text = whole.replace(/\B(?=(\d{3})+$)/g, ',') + (rest === undefined ? '' : `.${rest}`);
  const isZero = Number(Math.abs(value).toFixed(digits)) === 0;
  if (isZero) return text;
  return `${value < 0 ? '−' : isSigned ? '+' : ''}${text}`;
}

/** How many digits behind the point tell the values of an axis apart that lie so far from each other. */
export const digitsFor = (step: number) => (step > 0 ? Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)) : 0);
