import type { BackendFactory, IQueueBackend, WorkerOptions } from 'bullmq';
import type { Claim } from './lease.ts';

/** A queue's store with its connection baked in: what `withBackend` of BullMQ is given, the same for Redis and embedded. */
export interface Backend {
  kind: 'redis' | 'embedded';
  factory: BackendFactory<IQueueBackend, unknown>;
  /** The times that suit it. */
  worker: Pick<WorkerOptions, 'drainDelay' | 'lockDuration' | 'stalledInterval'>;
  /** From so many jobs on, adding them together costs less than one by one. */
  togetherFrom: number;
  /** Resolves as soon as a command would be answered, rejects when the signal says so. */
  ready(signal: AbortSignal): Promise<unknown>;
  /** Makes the store answer something. */
  ping(): Promise<void>;
  /** Where others may reach it too: makes this process the only one that works off the queues of a warehouse; gives what ends that. */
  claim?(prefix: string, claim: Claim): Promise<() => Promise<void>>;
  /** From now on a connection that is lost is one that we close, and nothing that fails is tried again. */
  closing?(): void;
  end(): Promise<void>;
}
