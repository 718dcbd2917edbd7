import type { People } from './users/people.ts';

/** What can be read: the newest state, or one that is a while old. */
export interface Readable {
  show(people: People): void;
  people(): People;
}

/** States become readable so much later than they were shown; `lagMs` may change at any time. */
export function createReadable(first: People, lagMs: () => number, realNow: () => number): Readable {
  let states = [{ people: first, at: Number.NEGATIVE_INFINITY }];

  /** Forgets what nobody will read any more. */
  function current(): People {
    const lag = lagMs();
    const found = lag > 0 ? states.findLastIndex(({ at }) => at <= realNow() - lag) : states.length - 1;
    states = states.slice(Math.max(0, found));
    return states[0]?.people ?? first;
  }

  return {
    show(people) {
      states.push({ people, at: realNow() });
      current();
    },
    people: current,
  };
}
