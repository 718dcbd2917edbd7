import type { Settings } from '../base/config.ts';
import type { Log } from '../base/log.ts';
import type { ClientOptions } from '../client/client.ts';
import type { Queues } from '../queue/queues.ts';
import type { EraseReport } from './erase/report.ts';

export interface AppOptions {
  settings: Settings;
  log: Log;
  /** Before a window's second attempt. */
  retryDelayMs?: number;
  /** Between the two 404s by which a collection is not offered. */
  secondLookMs?: number;
  /** How long a run goes on where nobody can be reached. */
  unreachedMs?: number;
  /** How often a run looks whether the queue holds what it should. */
  lookMs?: number;
  /** How the client waits and gives up. */
  client?: Pick<ClientOptions, 'sleep' | 'retries' | 'maxWaitMs' | 'deadlineMs' | 'connectMs' | 'maxResponseBytes'>;
  now?: () => number;
  /** Other queues than the settings say: where they do not matter, those in memory open a hundred times as fast. */
  openQueues?: () => Queues;
  /** Told of an erasing that was interrupted and is finished as the folder is opened. */
  onErased?: (report: EraseReport) => void;
  /** One command by itself, not `up`: without Redis its jobs are in its memory. */
  isAlone?: boolean;
  /** Is opened also while an erasing waits: see `App.erasing`. */
  acceptsWhileErasing?: boolean;
}

/** An erasing that waits for Redis, or for a file that cannot be removed now. */
export interface PausedErasing {
  /** Of whom no event is to be kept. */
  serviceUserIds: readonly string[];
  waitsFor: 'Redis' | 'a file';
  reason: string;
}

/** For whom the console is opened. */
export interface ConsoleGrant {
  role: 'operator' | 'reader' | 'person';
  /** The account of a `person`, else null. */
  person: string | null;
}

/** What opens a served console for somebody. */
export interface ConsoleLinks {
  /** An address for a browser, which opens a session once, within a minute. */
  createLink(grant: ConsoleGrant): string;
}
