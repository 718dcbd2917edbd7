import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { sign, signatureHeaders } from '../../src/base/signature.ts';
import { quantile } from '../row.ts';
import { performTask } from '../task.ts';

export interface SendEventsJob {
  /** Of the receiver. */
  url: string;
  secret: string;
  /** As JSON. */
  events: string[];
  perSecond: number;
}

export interface Sending {
  /** From the moment at which the first event was due to the sending of the last. */
  seconds: number;
  /** How often each status was the answer; a request without an answer counts by its error. */
  answers: Record<string, number>;
  /** Milliseconds from the moment at which an event was due to the end of its answer. */
  p50: number;
  p99: number;
  max: number;
  /** Milliseconds since the epoch. */
  lastSentAt: number;
}

const CONNECTIONS = 64;
const TICK_MS = 2;

/** Sends signed events at a steady rate, whatever the receiver does. */
performTask(async ({ url, secret, events, perSecond }: SendEventsJob): Promise<Sending> => {
  const pool = new Pool(new URL(url).origin, { connections: CONNECTIONS, pipelining: 1 });
  const path = new URL(url).pathname;
  const headers = signatureHeaders('x-service-');
  const answers: Record<string, number> = {};
  const waits: number[] = [];
  const start = performance.now();

  const send = async (body: string, dueAt: number) => {
    const timestamp = String(Math.floor(Date.now() / 1000));
    const request = {
      [headers.timestamp]: timestamp,
      [headers.signature]: sign(secret, timestamp, body),
      'content-type': 'application/json',
    };
    const answer = await pool
      .request({ method: 'POST', path, headers: request, body })
      .then(async ({ statusCode, body }) => {
        await body.dump();
        return String(statusCode);
      })
      .catch((error: { code?: string; message: string }) => error.code ?? error.message);
    answers[answer] = (answers[answer] ?? 0) + 1;
    waits.push(performance.now() - dueAt);
  };

  const sending: Promise<void>[] = [];
  const dueAt = (i: number) => start + (i * 1000) / perSecond;
  while (sending.length < events.length) {
    while (sending.length < events.length && dueAt(sending.length) <= performance.now()) {
      sending.push(send(events[sending.length]!, dueAt(sending.length)));
    }
    await sleep(TICK_MS);
  }
  const seconds = (performance.now() - start) / 1000;
  const lastSentAt = Date.now();
  await Promise.all(sending);
  await pool.close();
  return { seconds, answers, p50: quantile(waits, 0.5), p99: quantile(waits, 0.99), max: Math.max(...waits), lastSentAt };
});
