import type { Announce, Change } from './change.ts';
import type { FaultSwitches } from './faults.ts';
import { Random } from './users/random.ts';

/** How far a shuffled event may move. */
const SHUFFLE_MS = 10_000;

/** Telling of changes, with the faults that are on. Told again, a change meets the same fate: it hangs on its name alone. */
export function withEventFaults(announce: Announce, faults: FaultSwitches, seed: number): Announce {
  return async changes => {
    const [lose = 0, repeat = 1, delay = 0] = [faults.get('lose'), faults.get('repeat'), faults.get('delay')];
    const shuffle = faults.get('shuffle') ?? false;
    const draw = (purpose: string, { eventId }: Change) => new Random([seed, purpose, eventId]).next();
    const told = changes
      .filter(change => draw('lose', change) >= lose)
      .flatMap(change =>
        Array.from({ length: repeat }, (_, i) => (i === 0 ? change : { ...change, eventId: `${change.eventId}-${i + 1}` })),
      )
      .map(change => {
        const delayMs = Math.round((change.delayMs ?? 0) + delay * 1000 + (shuffle ? SHUFFLE_MS * draw('shuffle', change) : 0));
        return delayMs > 0 ? { ...change, delayMs } : change;
      });
    if (shuffle) told.sort((a, b) => draw('shuffle', a) - draw('shuffle', b));
    if (told.length > 0) await announce(told);
  };
}
