import type { Settings } from '../base/config.ts';
import type { TryLaterError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { FailureCommand } from '../base/on-failure.ts';
import type { ClientOptions } from '../client/client.ts';
import type { Catalogue } from '../machines/catalogue.ts';
import type { Holder, LeaseTimes } from '../machines/lease.ts';
import type { Queues } from '../queue/queues.ts';
import type { Unwritten } from '../sign-in/sign-ins.ts';
import type { EraseReport } from './erase/report.ts';
import type { InHand } from './in-hand.ts';

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
  /** How long another process is waited for that finishes an erasing or a move which was interrupted. */
  finishingMs?: number;
  /** How the client waits and gives up. */
  client?: Pick<ClientOptions, 'sleep' | 'retries' | 'maxWaitMs' | 'deadlineMs' | 'connectMs' | 'maxResponseBytes'>;
  now?: () => number;
  /** Other queues than the settings say: where they do not matter, those in memory open a hundred times as fast. */
  openQueues?: () => Queues;
  /** Told of an erasing that was interrupted and is finished as the folder is opened. */
  onErased?: (report: EraseReport) => void;
  /** One command by itself, not `up`: without Redis its jobs are in its memory. */
  isAlone?: boolean;
  /** How long a lease on a lake lasts. */
  leaseTimes?: LeaseTimes;
  /** Told once that another machine has the lake, or may have it; without it the process ends. */
  onLakeLost?: (message: string) => void;
  /** Sign-ins of who was erased that are being taken back: whoever ends the process waits for them. */
  ofErased?: InHand;
  /** Renewed sign-ins that no disk has taken yet: where the folder is closed for a while they are there once it is open again. */
  unwritten?: Unwritten;
  /** Runs RINGNECK_ON_FAILURE also while the folder is closed for a while, and is closed by who has made it. */
  onFailure?: FailureCommand;
  /** While another machine works on the lake. */
  standby?: StandbyOptions;
  /** Is opened also while an erasing waits: see `App.erasing`. */
  acceptsWhileErasing?: boolean;
}

export interface StandbyOptions {
  catalogue: Catalogue;
  /** Who works on it. */
  holder(): Holder;
  /** What is thrown where something would be changed. */
  refusal(): TryLaterError;
}

/** An erasing that waits for Redis, for a file that cannot be removed now, or for who reads the lake. */
export interface PausedErasing {
  /** Of whom no event is to be kept. */
  serviceUserIds: readonly string[];
  waitsFor: 'Redis' | 'a file' | 'the lake';
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
