import { createHash, timingSafeEqual } from 'node:crypto';

/** Whether two texts are the same, in constant time whatever their lengths: one of them is a secret. */
export function isSameText(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
