import { below, randomFrom } from './random-documents.ts';

/** Whether this is a campaign, which runs the whole of what the suite has a short version of. */
export const isWhole = process.env.WHOLE_TESTS === '1';

/** Which part is chosen: another one each day, named in every failure, unless RINGNECK_CAMPAIGN_SEED gives one. */
export const seed = Number(process.env.RINGNECK_CAMPAIGN_SEED ?? Math.floor(Date.now() / 86_400_000));

/**
 * Which of so many steps, counted from 1, are disturbed, each in a run of its own: in a campaign all; in the suite the first, the last two,
 * where what was done is committed, and of each `share` between them one.
 */
export function stepsOf(count: number, share: number): number[] {
  const all = Array.from({ length: count }, (_, i) => i + 1);
  if (isWhole) return all;
  const random = randomFrom(seed);
  const chosen = new Set([1, count - 1, count]);
  for (let from = 2; from < count - 1; from += share) chosen.add(from + below(random, Math.min(share, count - 1 - from)));
  return all.filter(step => chosen.has(step));
}

/** In a campaign all of them; in the suite those that are named, and `more` of the others, by the seed. */
export function someOf<T>(all: readonly T[], { always = [], more }: { always?: readonly T[]; more: number }): T[] {
  if (isWhole) return [...all];
  const random = randomFrom(seed);
  const others = all.filter(one => !always.includes(one));
  while (others.length > more) others.splice(below(random, others.length), 1);
  return all.filter(one => always.includes(one) || others.includes(one));
}
