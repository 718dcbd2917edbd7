import type { Page } from 'playwright-core';

/** A point as it is drawn, and the datum that it says it is of. */
export interface DrawnPoint {
  x: number;
  y: number;
  key: string;
  value: number;
}

/** The points of lines and dots below an element: places from the paths themselves, data from `data-points`. */
export async function pointsOf(page: Page, selector: string): Promise<DrawnPoint[]> {
  const marks = await page
    .locator(`${selector} [data-points]`)
    .evaluateAll(elements => elements.map(element => ['d', 'cx', 'cy', 'data-points'].map(name => element.getAttribute(name) ?? '')));
  return marks.flatMap(([d = '', cx = '', cy = '', data = '']) => {
    const places = d ? [...d.matchAll(/(-?[\d.]+),(-?[\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]) : [[Number(cx), Number(cy)]];
    return data.split(' ').map((pair: string, index: number) => {
      const [key = '', value = ''] = pair.split(',');
      const [x = Number.NaN, y = Number.NaN] = places[index] ?? [];
      return { x, y, key, value: Number(value) };
    });
  });
}

/** From a pixel to a value, by the first and the last label of an axis: nothing of the page’s own scales is asked. */
export async function axisOf(
  page: Page,
  labels: string,
  { along, name, toNumber = Number, shift = 0 }: { along: 'x' | 'y'; name: string; toNumber?: (text: string) => number; shift?: number },
): Promise<(pixel: number) => number> {
  const ticks = await page
    .locator(labels)
    .evaluateAll(
      (elements, [place = '', datum = '']) => elements.map(one => [one.getAttribute(place), one.getAttribute(datum)]),
      [along, name],
    );
  const [first, last] = [ticks[0], ticks.at(-1)].map(tick => ({ pixel: Number(tick?.[0]) - shift, value: toNumber(tick?.[1] ?? '') }));
  if (!first || !last || first.pixel === last.pixel) throw new Error(`${labels} has no two labels`);
  return pixel => first.value + ((pixel - first.pixel) / (last.pixel - first.pixel)) * (last.value - first.value);
}

/** Every so manieth, so that about `count` are left. */
export const someOfMany = <T>(all: readonly T[], count = 20): T[] =>
  all.filter((_, index) => index % Math.max(1, Math.floor(all.length / count)) === 0);
