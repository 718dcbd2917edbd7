import { below, pick, type Random } from '../support/random-documents.ts';
import { headersOf, NOW, OLD_SECRET, type Signed, signed } from './signed.ts';

/** A request that no receiver may accept. */
export interface Forgery {
  kind: string;
  headers: [string, string][];
  body: Buffer;
}

export const WINDOW_MS = 300_000;

/** An event that is good, in one of the three forms of a timestamp, a moment from the middle of the window. */
export function goodRequest(random: Random, sentAt = NOW - below(random, 250_000)): Signed {
  const event = {
    event_type: pick(random, ['create', 'update', 'delete']),
    data_type: pick(random, ['sleep', 'daily_activity', 'vo2_max']),
    object_id: `id-${below(random, 1e9)}-ü`,
    event_time: '2025-05-31T23:59:30+00:00',
    user_id: `u${below(random, 1e6)}`,
  };
  return signed(JSON.stringify(event), timestampOf(random, sentAt));
}

function timestampOf(random: Random, ms: number): string {
  return pick(random, [String(Math.floor(ms / 1000)), String(ms), new Date(ms).toISOString()]);
}

type Mutation = (random: Random, good: Signed) => Signed | [Signed, [string, string][]];

const text = (body: Buffer) => body.toString('latin1');
const bytes = (body: string) => Buffer.from(body, 'latin1');

function flipped(random: Random, value: string): string {
  const at = below(random, value.length);
  return value.slice(0, at) + String.fromCharCode(value.charCodeAt(at) ^ (1 << below(random, 8))) + value.slice(at + 1);
}

/** Another letter or digit; not only another case of the same, which is the same signature. */
function otherSignature(random: Random, signature: string): string {
  const other = flipped(random, signature);
  return other.toLowerCase() === signature.toLowerCase() ? otherSignature(random, signature) : other;
}

function otherCase(random: Random, value: string): string {
  const letters = [...value.matchAll(/[a-zA-Z]/g)].map(({ index }) => index);
  const at = pick(random, letters);
  const letter = value[at]!;
  return value.slice(0, at) + (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()) + value.slice(at + 1);
}

const doubled = (name: string, value: string, good: Signed): [Signed, [string, string][]] => [good, [...headersOf(good), [name, value]]];

const without = (good: Signed, ...names: string[]): [Signed, [string, string][]] => [
  good,
  headersOf(good).filter(([name]) => !names.includes(name.toLowerCase())),
];

export const MUTATIONS: Record<string, Mutation> = {
  'a bit of the body': (random, good) => ({ ...good, body: bytes(flipped(random, text(good.body))) }),
  'a bit of the timestamp': (random, good) => ({ ...good, timestamp: flipped(random, good.timestamp) }),
  'a bit of the signature': (random, good) => ({ ...good, signature: otherSignature(random, good.signature) }),
  'case in the body': (random, good) => ({ ...good, body: bytes(otherCase(random, text(good.body))) }),
  'a shorter body': (random, good) => ({ ...good, body: good.body.subarray(0, below(random, good.body.length)) }),
  'a body without its beginning': (random, good) => ({ ...good, body: good.body.subarray(1 + below(random, good.body.length)) }),
  'a shorter timestamp': (random, good) => ({ ...good, timestamp: good.timestamp.slice(0, below(random, good.timestamp.length)) }),
  'a shorter signature': (random, good) => ({ ...good, signature: good.signature.slice(0, below(random, 64)) }),
  'a longer body': (random, good) => ({ ...good, body: Buffer.concat([good.body, bytes(pick(random, ['\n', ' ', '}', '\0', '{}']))]) }),
  'a longer timestamp': (random, good) => ({ ...good, timestamp: good.timestamp + pick(random, ['0', 'Z', '.0', ';']) }),
  'a longer signature': (random, good) => ({ ...good, signature: good.signature + pick(random, ['0', 'FF', good.signature, ',']) }),
  'no timestamp': (_, good) => without(good, 'x-service-timestamp'),
  'no signature': (_, good) => without(good, 'x-service-signature'),
  'neither header': (_, good) => without(good, 'x-service-timestamp', 'x-service-signature'),
  'two equal timestamps': (_, good) => doubled('x-service-timestamp', good.timestamp, good),
  'two timestamps': (_, good) => doubled('X-SERVICE-TIMESTAMP', '1748735999', good),
  'two equal signatures': (_, good) => doubled('X-Service-Signature', good.signature, good),
  'two signatures': (random, good) => doubled('x-service-signature', otherSignature(random, good.signature), good),
  'headers of another prefix': (_, good) => [
    good,
    headersOf(good).map(([name, value]) => [name.replace(/service/i, 'other'), value] as [string, string]),
  ],
  'headers that are swapped': (_, good) => ({ ...good, timestamp: good.signature, signature: good.timestamp }),
  'another secret': (random, { timestamp, body }) =>
    signed(body, timestamp, pick(random, ['A-client-secret', 'a-client-secret ', ' ', 'x'])),
  'a secret that is no longer valid': (_, { timestamp, body }) => signed(body, timestamp, OLD_SECRET),
  'a signature without the timestamp': (_, { timestamp, body }) => ({ ...signed(body, ''), timestamp }),
  'a signature as base64': (_, good) => ({ ...good, signature: Buffer.from(good.signature, 'hex').toString('base64') }),
  'a body that was written again': (random, good) => {
    const event = JSON.parse(good.body.toString()) as object;
    const spaced = JSON.stringify(event, null, 1 + below(random, 4));
    const reversed = JSON.stringify(Object.fromEntries(Object.entries(event).reverse()));
    const escaped = JSON.stringify(event).replaceAll('ü', '\\u00fc');
    return { ...good, body: Buffer.from(pick(random, [spaced, reversed, escaped])) };
  },
  'the same moment in another form': (_, good) => {
    const ms = /^\d{10}$/.test(good.timestamp)
      ? Number(good.timestamp) * 1000
      : new Date(Number(good.timestamp) || good.timestamp).getTime();
    const forms = [String(Math.floor(ms / 1000)), String(ms), new Date(ms).toISOString()];
    return { ...good, timestamp: forms.find(form => form !== good.timestamp)! };
  },
  'a boundary that moved to the left': (random, { timestamp, signature, body }) => {
    // Three digits of milliseconds leave a timestamp in seconds behind: the signature holds, the body is another.
    const count = pick(random, [3, 1 + below(random, timestamp.length)]);
    return { timestamp: timestamp.slice(0, -count), signature, body: Buffer.concat([bytes(timestamp.slice(-count)), body]) };
  },
  'a boundary that moved to the right': (random, { timestamp, signature, body }) => {
    const count = 1 + below(random, 12);
    return { timestamp: timestamp + text(body.subarray(0, count)), signature, body: body.subarray(count) };
  },
  'an old timestamp': (random, { body }) => signed(body, timestampOf(random, NOW - WINDOW_MS - 1000 - below(random, 1e10))),
  'a timestamp of the future': (random, { body }) => signed(body, timestampOf(random, NOW + WINDOW_MS + 1000 + below(random, 1e10))),
};

/** Forgeries of every kind in turn; the same for the same seed. */
export function* forgeries(random: Random, count: number): Generator<Forgery> {
  const kinds = Object.entries(MUTATIONS);
  for (let i = 0; i < count; i++) {
    const [kind, mutate] = kinds[i % kinds.length]!;
    const mutated = mutate(random, goodRequest(random));
    const [request, headers] = Array.isArray(mutated) ? mutated : [mutated, headersOf(mutated)];
    yield { kind, headers, body: request.body };
  }
}
