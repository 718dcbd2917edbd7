import type { Client, ServiceClock } from '../src/client/client.ts';
import type { Journal } from '../src/journal.ts';
import type { Log } from '../src/log.ts';
import type { OnFailure } from '../src/on-failure.ts';
import type { Queues } from '../src/queue/queues.ts';
import type { Warehouse } from '../src/warehouse/warehouse.ts';
import type { Collection } from './collections.ts';
import type { Runs } from './runs.ts';

/** Where tokens are kept. */
export interface Tokens {
  /** The token for the service that is asked. */
  find(userId: string): string | undefined;
  /** Why there is none, and what to do about it; undefined when there is one. */
  whyMissing(userId: string): string | undefined;
  /** The same for the same text, under the key of the tokens: the text cannot be found from it. */
  digest(text: string): string;
}

/** What a job works with. Opened and closed by the command that owns the data folder. */
export interface Pipeline {
  warehouse: Warehouse;
  client: Client;
  queues: Queues;
  /** The accepted events that have no outcome yet. */
  inbox: Journal;
  tokens: Tokens;
  collections: readonly Collection[];
  runs: Runs;
  settledDays: number;
  /** Requests in flight for one account. */
  requestsPerToken: number;
  /** Before a window's second attempt; doubled before each further one. */
  retryDelayMs: number;
  /** How long a run goes on trying to reach a service that has never answered it. */
  unreachedMs: number;
  /** How far apart the two 404s lie by which a collection is not offered. */
  secondLookMs: number;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Which days are over, and what can have been measured; `askServiceClock` where a range is planned by it. */
  serviceClock: ServiceClock;
  log: Log;
  /** Has somebody told who does not read the log. */
  onFailure: OnFailure;
}
