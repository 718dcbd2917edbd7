import type {
  BulkJobOptions,
  Queue as BullQueue,
  QueueEvents as BullQueueEvents,
  Worker as BullWorker,
  IQueueBackend,
  Job,
  JobProgress,
  JobsOptions,
  Processor,
  WorkerOptions,
} from 'bullmq';
import { TryLaterError } from '../base/errors.ts';

export type Queue<Data = unknown, Result = unknown> = BullQueue<Data, Result, string, Data, Result, string, IQueueBackend, unknown>;
export type Worker<Data = unknown, Result = unknown> = BullWorker<Data, Result, string, IQueueBackend, JobProgress, unknown>;
export type QueueEvents<Result = unknown> = BullQueueEvents<Result, IQueueBackend, unknown>;

export interface QueueCounts {
  waiting: number;
  active: number;
  delayed: number;
  failed: number;
}

export interface NewJob {
  name: string;
  data: unknown;
  opts?: BulkJobOptions;
}

/** The queue's store did not take the job in time: the sender should try again. */
export class QueueUnavailable extends TryLaterError {}

/**
 * BullMQ on one store. What holds on both, embedded and Redis, and what does not:
 * - job ids contain no ":" and are not all digits (BullMQ refuses them); U+0000 in data is refused when embedded;
 *   the keys of an object may come back in another order when embedded;
 * - an event that arrives while its predecessor runs is kept with `deduplication: { id, keepLastIfActive: true }` only;
 * - never `setGlobalConcurrency`: embedded it becomes a busy loop.
 */
export interface Queues {
  readonly kind: 'redis' | 'embedded' | 'memory';
  /** The queue of this name, always the same one. */
  queue(name: string): Queue;
  /** Works off a queue. Its errors are logged; a job's own errors are the caller's. */
  worker<Data = unknown, Result = unknown>(name: string, process: Processor<Data, Result>, options: WorkerSettings): Worker<Data, Result>;
  events(name: string): QueueEvents;
  /** Adds a job durably. Rejects with QueueUnavailable after 1.5 s: BullMQ alone would wait for Redis without end. */
  add(queue: string, name: string, data: unknown, options?: JobsOptions): Promise<Job>;
  /**
   * Adds many durably, each slice of 200 at once. Rejects with QueueUnavailable when a slice gets no answer in 1.5 s; some of the jobs may
   * be in the queue then.
   */
  addAll(queue: string, jobs: readonly NewJob[]): Promise<void>;
  /** Adds many, each slice of 200 at once. Waits for a Redis that is away. */
  addBulk(queue: string, jobs: readonly NewJob[]): Promise<void>;
  /** Removes all jobs, those that somebody works on too. */
  empty(queue: string): Promise<void>;
  /**
   * Removes what is left of jobs that `ids` does not name: where a store has lost the half of one, the other half would keep it from being
   * added again. What a worker holds stays. Rejects with QueueUnavailable like `addAll`.
   */
  forget(queue: string, ids: readonly string[]): Promise<void>;
  /** Has all jobs that are put off worked on now. Rejects with QueueUnavailable like `add`. */
  promote(queue: string): Promise<void>;
  /** The ids of all jobs that wait, are put off, worked on or have failed. Rejects with QueueUnavailable like `add`. */
  ids(queue: string): Promise<Set<string>>;
  /** Rejects with QueueUnavailable like `add`. */
  counts(queue: string): Promise<QueueCounts>;
  /** Rejects with QueueUnavailable when the store gives no answer in 1.5 s. */
  ping(): Promise<void>;
  /** Lets running jobs end, for `graceMs` at most (10 s); those left behind run again at the next start. */
  close(options?: { graceMs?: number }): Promise<void>;
}

export type WorkerSettings = { concurrency: number } & Omit<WorkerOptions, 'connection' | 'prefix' | 'concurrency'>;
