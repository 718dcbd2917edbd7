/** Keeps one slow or dead receiver from filling the workers: only so many deliveries at a time go to one destination. */
export interface Destinations {
  /**
   * Takes a place, after a moment's wait where the receiver is quick; when there is none, how many milliseconds to stay away. Each job
   * that enters leaves, or stays away and enters again.
   */
  enter(destination: string, jobId: string): Promise<number | undefined>;
  leave(destination: string, jobId: string): void;
  /** A job that stayed away has come back, whether it still wants to enter or not. */
  comeBack(jobId: string): void;
}

const PLACES = 8;
/** So long a job waits for a place without leaving its worker: that is how long a receiver that stops answering can hold up others. */
const PATIENCE_MS = 250;
const STAY_AWAY_MS = { least: 25, most: 300_000 };
/** Of a receiver that is not known yet: a slow one is soon found out, a quick one must not wait for its own events. */
const FIRST_EXPECTED_MS = 10;
/** How much the latest exchange counts in what the next one is expected to take. */
const LATEST = 0.2;

interface Destination {
  /** When each job that has a place began. */
  active: Map<string, number>;
  /** Those that wait without leaving, each with how to give it a place. */
  waiting: Map<string, () => void>;
  away: number;
  /** What an exchange is expected to take. */
  expectedMs: number;
}

/**
 * Who finds no place stays away until those before it should be through: where ten thousand wait for a dead receiver, each comes to
 * look a few times and not all of them all the time.
 */
export function createDestinations(now: () => number): Destinations {
  const destinations = new Map<string, Destination>();
  const away = new Map<string, string>();

  function forgetIdle(name: string): void {
    const destination = destinations.get(name);
    if (destination?.active.size === 0 && destination.away === 0) destinations.delete(name);
  }

  /** The map keeps its order: the first has been under way for longest, and what takes its place may take as long. */
  function expectedMsAt({ active, expectedMs }: Destination): number {
    const [longest = now()] = active.values();
    return Math.max(expectedMs, now() - longest);
  }

  function stayAway(name: string, destination: Destination, jobId: string): number {
    away.set(jobId, name);
    destination.away++;
    const turnMs = (destination.away * expectedMsAt(destination)) / PLACES;
    return Math.min(Math.max(turnMs, STAY_AWAY_MS.least), STAY_AWAY_MS.most);
  }

  return {
    async enter(name, jobId) {
      const destination = destinations.get(name) ?? { active: new Map(), waiting: new Map(), away: 0, expectedMs: FIRST_EXPECTED_MS };
      destinations.set(name, destination);
      const { active, waiting } = destination;
      if (active.size < PLACES) {
        active.set(jobId, now());
        return undefined;
      }
      const expectedMs = expectedMsAt(destination);
      if (Math.max(expectedMs, ((waiting.size + 1) * expectedMs) / PLACES) > PATIENCE_MS) return stayAway(name, destination, jobId);
      return new Promise(resolve => {
        const patience = setTimeout(() => {
          waiting.delete(jobId);
          resolve(stayAway(name, destination, jobId));
        }, PATIENCE_MS);
        waiting.set(jobId, () => {
          clearTimeout(patience);
          resolve(undefined);
        });
      });
    },
    leave(name, jobId) {
      const destination = destinations.get(name);
      const began = destination?.active.get(jobId);
      if (!destination || began === undefined) return;
      destination.active.delete(jobId);
      destination.expectedMs += LATEST * (now() - began - destination.expectedMs);
      const [next] = destination.waiting;
      if (next) {
        const [nextId, takePlace] = next;
        destination.waiting.delete(nextId);
        destination.active.set(nextId, now());
        takePlace();
      } else forgetIdle(name);
    },
    comeBack(jobId) {
      const name = away.get(jobId);
      if (name === undefined) return;
      away.delete(jobId);
      destinations.get(name)!.away--;
      forgetIdle(name);
    },
  };
}
