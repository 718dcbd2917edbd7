import { createHmac } from 'node:crypto';

/** 2025-06-01T00:00:00Z: the clock of these tests. */
export const NOW = 1_748_736_000_000;
export const SECRET = 'a-client-secret';
export const OLD_SECRET = 'the-old-secret';

export interface Signed {
  timestamp: string;
  signature: string;
  body: Buffer;
}

/** What a service sends. Its own few lines, so that the code under test does not judge itself. */
export function signed(body: string | Buffer, timestamp = '1748736000', secret = SECRET): Signed {
  const bytes = Buffer.from(body);
  const text = Buffer.concat([Buffer.from(timestamp), bytes]);
  return { timestamp, signature: createHmac('sha256', secret).update(text).digest('hex').toUpperCase(), body: bytes };
}

export const EVENT = {
  event_type: 'update',
  data_type: 'sleep',
  object_id: '8f9a5221-639e-4a85-81cb-4065ef23f979',
  event_time: '2025-05-31T23:59:30+00:00',
  user_id: 'c6b1c8a4',
};
export const BODY = JSON.stringify(EVENT);

/** As node:http gives them, with what a proxy would add. */
export const headersOf = ({ timestamp, signature }: Signed): [string, string][] => [
  ['Host', 'ringneck.example'],
  ['Content-Type', 'application/json'],
  ['X-Service-Timestamp', timestamp],
  ['x-service-signature', signature],
];
