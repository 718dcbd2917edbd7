import { digitsFor } from '../../parts/metrics.ts';

/** Four digits, a true minus. */
export function numberText(value: number): string {
  const size = Math.abs(value);
  const text =
    size !== 0 && (size < 1e-4 || size >= 1e9)
      ? value.toExponential(2)
      : String(Number(value.toFixed(size >= 100 ? 1 : size >= 1 ? 2 : 4)));
  return text.replaceAll('-', '−');
}

/** Values at equal distances, with as many digits as tell them apart. */
export function tickTexts(ticks: readonly number[]): string[] {
  const step = Math.abs((ticks[1] ?? 0) - (ticks[0] ?? 0));
  if (!step) return ticks.map(numberText);
  const most = Math.max(...ticks.map(Math.abs));
  const exponent = (value: number) => Math.floor(Math.log10(value) + 1e-9);
  const isLong = most >= 1e9 || step < 1e-4;
  const isTold = (digits: number) => ticks.every(value => Math.abs(Number(value.toFixed(digits)) - value) <= step / 20);
  const digits = [0, 1, 2].map(more => digitsFor(step) + more).find(isTold) ?? digitsFor(step) + 2;
  const text = (value: number) => (isLong ? value.toExponential(exponent(most) - exponent(step)) : value.toFixed(digits));
  return ticks.map(value => (value === 0 ? '0' : text(value).replaceAll('-', '−')));
}
