import type { RingneckError } from '../base/errors.ts';
import type { Inbox } from '../base/journal.ts';
import type { Log } from '../base/log.ts';
import type { OnFailure } from '../base/on-failure.ts';
import type { Tokens } from '../base/secrets/secrets.ts';
import type { Client, ReleaseWhile, RequestTimes, ServiceClock } from '../client/client.ts';
import type { RunRequest } from '../ledger/runs.ts';
import type { Rejects, Window } from '../ledger/windows.ts';
import type { Queues } from '../queue/queues.ts';
import type { SignIns } from '../sign-in/sign-ins.ts';
import type { LedgerEntry } from '../warehouse/sql.ts';
import type { Warehouse } from '../warehouse/warehouse.ts';
import type { WriteResult } from '../warehouse/write-result.ts';
import type { DeletionShare } from './deletions/deletion-brake.ts';
import type { OpenWindow } from './runs/account-windows.ts';
import type { Run } from './runs/run.ts';

export interface CollectContext {
  pipeline: Pick<Pipeline, 'client' | 'warehouse' | 'runs' | 'now' | 'serviceClock' | 'log' | 'tokens' | 'onFailure'>;
  token: string;
  signal: AbortSignal;
  /** Others have the worker while the service has asked for a wait. */
  releaseWhile: ReleaseWhile;
  /** Removes what is missing, however much it is. */
  acceptDeletions: boolean;
  /** What this window may take out of what its run may remove. */
  share: DeletionShare;
  /** Whether what has changed should have been announced by an event. */
  expectsEvents: boolean;
  /** Called for each answer. */
  onAnswer(): void;
  /** Called as each page is stored. */
  onStored(counts: WriteResult, documents: number): void;
  /** Whether the run has not read all that it should of another collection of the account. */
  hasFailed(collection: string): boolean;
  /** Another run reads what this one has made unread. */
  goesOnIn(next: Promise<Run>): void;
  /** The ledger's row of the window, to be committed with the last of its documents. */
  ledger(result: WindowResult): LedgerEntry[];
}

export interface WindowResult extends RequestTimes {
  outcome: 'complete' | 'not_offered' | 'suspicious' | 'failed';
  reason?: string;
  requests: number;
  documents: number;
  /** The path, where a collection has more than one. */
  route?: string;
  /** How many stored documents or rows it removed. */
  removed?: number;
  /** Where rows belong to no day of their own: how many came of each UTC day, from the window's first. */
  rowsByDay?: readonly number[];
  /** What the answer's pages are known by, where all of it was stored. */
  pages?: string | undefined;
  rejects?: Rejects;
}

/** What the pipeline works on: a document type or the heart rate. */
export interface Collection {
  name: string;
  /** Days in one window, a few dozen requests at most; undefined where the collection has no dates and is read whole, once in a run. */
  windowDays: number | undefined;
  /** SQL for the newest day of a user's rows; undefined where rows belong to no day. */
  newestDay: string | undefined;
  /** The column with the day of a document; undefined where there are none, or rows that come with their readings. */
  dayColumn: string | undefined;
  /** The column that is null while a document goes on, where it may for weeks. */
  endColumn?: string | undefined;
  /** The name in events; undefined where there are none. */
  dataType: string | undefined;
  /** What a person must have allowed for it to be read. */
  scope: string;
  /** The collection whose documents name those of this one. */
  namedBy?: string;
  /** Reads one window from the service into the warehouse, window row included. Throws ServiceError; TooLarge where it is to be cut. */
  collect(window: Window, context: CollectContext): Promise<WindowResult>;
  /** The same where the service is known not to offer the collection, but what is in it may be found otherwise. */
  collectNotOffered?(window: Window, context: CollectContext): Promise<WindowResult>;
}

/** The runs of a process. */
export interface RunKeeper {
  start(request: RunRequest): Promise<Run>;
  find(id: string): Run | undefined;
  isOver(id: string): Promise<boolean>;
  active(): Run[];
  countWindows(): { active: number; delayed: number };
  cut(run: Run, window: OpenWindow): Promise<void>;
  store<T>(run: Run, work: () => Promise<T>): Promise<T>;
  findDiskWait(): number | undefined;
  findUnreached(run: Run, patient: boolean): Promise<RingneckError | undefined>;
  breakOff(run: Run, reason: RingneckError): void;
  takeUp(): Promise<void>;
  open(pipeline: Pipeline): Promise<void>;
  close(pause?: string): void;
}

/** What a job works with. Opened and closed by the command that owns the data folder. */
export interface Pipeline {
  warehouse: Warehouse;
  client: Client;
  queues: Queues;
  /** The accepted events that have no outcome yet. */
  inbox: Inbox;
  tokens: Tokens;
  signIns: Pick<SignIns, 'renewRefused'>;
  collections: readonly Collection[];
  runs: RunKeeper;
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

/** A token was replaced or taken away while the service answered it: the answer may be of another person, and is asked for again. */
export class TokenReplaced extends Error {}

/** Throws TokenReplaced once the account has another token than the one that was asked with, and none that was renewed from it. */
export const tokenGuard =
  (tokens: Pick<Tokens, 'isSame'>, userId: string, token: string): (() => void) =>
  () => {
    if (!tokens.isSame(userId, token)) throw new TokenReplaced(`the token of ${userId} was replaced meanwhile`);
  };
