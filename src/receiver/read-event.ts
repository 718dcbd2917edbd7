import { isUtf8 } from 'node:buffer';
import { type WebhookEvent, webhookEvent } from '../../schema/webhook.ts';
import { findTimestampMs, isSignedBy } from '../base/signature.ts';
import type { Reason } from './refusals.ts';

/** By what an event is known to be the service's (5.3). */
export interface Proof {
  /** The names of the two headers, in lower case. */
  headers: { timestamp: string; signature: string };
  secrets: readonly string[];
  /** How far a timestamp may be from our clock; 0 = any. */
  windowMs: number;
}

export interface ReadEvent {
  event: WebhookEvent;
  /** In upper case. */
  signature: string;
  /** How many keys it has beyond those of 2.17. */
  unknownKeys: number;
}

const FIELDS = Object.keys(webhookEvent.shape).length;

/** The event in a request (2.17), or why it is none. `rawHeaders` are names and values in turn, as they came. */
export function readEvent(rawHeaders: readonly string[], body: Uint8Array, proof: Proof, nowMs: number): ReadEvent | { refused: Reason } {
  const timestamps = findHeader(rawHeaders, proof.headers.timestamp);
  const signatures = findHeader(rawHeaders, proof.headers.signature);
  const [timestamp, signature] = [timestamps[0], signatures[0]];
  if (timestamp === undefined || signature === undefined) return { refused: 'missing_header' };
  // Whoever stands between might read the other one of two.
  if (timestamps.length > 1 || signatures.length > 1) return { refused: 'doubled_header' };
  const sentAt = findTimestampMs(timestamp);
  if (sentAt === undefined) return { refused: 'bad_timestamp' };
  if (proof.windowMs > 0 && nowMs - sentAt > proof.windowMs) return { refused: 'too_old' };
  if (proof.windowMs > 0 && sentAt - nowMs > proof.windowMs) return { refused: 'too_new' };
  if (!isSignedBy(proof.secrets, timestamp, body, signature)) return { refused: 'bad_signature' };
  const content = parseJson(body);
  if (content === undefined) return { refused: 'not_json' };
  const parsed = webhookEvent.safeParse(content);
  if (!parsed.success) return { refused: refusalOf(content) };
  // Of an object with the five keys: safeParse has seen them.
  const unknownKeys = Object.keys(content ?? {}).length - FIELDS;
  return { event: parsed.data, signature: signature.toUpperCase(), unknownKeys };
}

function findHeader(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const given = rawHeaders[i];
    if (given?.length === name.length && given.toLowerCase() === name) values.push(rawHeaders[i + 1] ?? '');
  }
  return values;
}

function parseJson(body: Uint8Array): unknown {
  // A byte that is no UTF-8 would become another character, in an identifier another document.
  if (!isUtf8(body)) return undefined;
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.length).toString());
  } catch {
    return undefined;
  }
}

/** An operation that we do not know is worth a reason of its own: a service that has learned one shows up in the counts. */
function refusalOf(content: unknown): Reason {
  const { event_type: operation } = webhookEvent.shape;
  if (typeof content !== 'object' || content === null || !('event_type' in content)) return 'wrong_fields';
  const isUnknown = typeof content.event_type === 'string' && !operation.safeParse(content.event_type).success;
  return isUnknown ? 'unknown_event_type' : 'wrong_fields';
}
