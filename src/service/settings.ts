import type { RateLimit } from './rate-limit.ts';

export interface ServiceSettings {
  /** Documents on a page. */
  pageSize: number;
  /** Heart-rate rows on a page. */
  heartRatePageSize: number;
  /** For each token. */
  rateLimit: RateLimit | 'off';
  /** For all authorised requests together. */
  appRateLimit: RateLimit | 'off';
  /** Counts the last day in where the service usually leaves it out. */
  inclusiveEnd: boolean;
  /** Serves what section 4 lists and nothing else. */
  specificationOnly: boolean;
  /** Bytes of a request's body. No data route reads one. */
  bodyLimit: number;
  /** Until a request must have arrived whole. */
  requestTimeoutMs: number;
  /** Until an answer must be ready; then 503. */
  answerTimeoutMs: number;
  /** How long a connection may stay unused between two requests. */
  idleTimeoutMs: number;
  /** How long closing waits for clients that still read their answers. */
  closeTimeoutMs: number;
}

export const defaultSettings: ServiceSettings = {
  pageSize: 50,
  heartRatePageSize: 1000,
  // What live services have, or had: the figure for an application is ours.
  rateLimit: { requests: 5_000, seconds: 300 },
  appRateLimit: { requests: 50_000, seconds: 300 },
  inclusiveEnd: false,
  specificationOnly: false,
  bodyLimit: 65_536,
  requestTimeoutMs: 30_000,
  answerTimeoutMs: 60_000,
  idleTimeoutMs: 70_000,
  closeTimeoutMs: 5_000,
};
