import { expect, test } from 'vitest';
import { readEvent } from '../../src/receiver/read-event.ts';
import { randomFrom } from '../support/random-documents.ts';
import { forgeries, goodRequest, MUTATIONS, WINDOW_MS } from './mutations.ts';
import { BODY, EVENT, headersOf, NOW, OLD_SECRET, SECRET, type Signed, signed } from './signed.ts';

const proof = {
  headers: { timestamp: 'x-service-timestamp', signature: 'x-service-signature' },
  secrets: [SECRET],
  windowMs: WINDOW_MS,
};

const read = (request: Signed, changes: Partial<typeof proof> = {}, nowMs = NOW) =>
  readEvent(headersOf(request).flat(), request.body, { ...proof, ...changes }, nowMs);

test('an event that the service signed is read, with its signature in upper case', () => {
  const request = signed(BODY);
  expect(read(request)).toEqual({ event: EVENT, signature: request.signature, unknownKeys: 0 });
  expect(read({ ...request, signature: request.signature.toLowerCase() })).toEqual({
    event: EVENT,
    signature: request.signature,
    unknownKeys: 0,
  });
});

test('what the mutations start from is good, so that a refusal is the mutation’s', () => {
  const random = randomFrom(1);
  for (let i = 0; i < 1_000; i++) expect(read(goodRequest(random))).toMatchObject({ unknownKeys: 0 });
});

test('none of 10,000 forgeries is read as an event', () => {
  const kinds = new Map<string, Set<string>>();
  for (const { kind, headers, body } of forgeries(randomFrom(20_250_601), 10_000)) {
    const reading = readEvent(headers.flat(), body, proof, NOW);
    if (!('refused' in reading)) throw new Error(`accepted: ${kind} ${JSON.stringify(headers)} ${body}`);
    kinds.set(kind, (kinds.get(kind) ?? new Set()).add(reading.refused));
  }
  expect([...kinds.keys()].sort()).toEqual(Object.keys(MUTATIONS).sort());
  expect(kinds.get('two equal signatures')).toEqual(new Set(['doubled_header']));
  expect(kinds.get('two timestamps')).toEqual(new Set(['doubled_header']));
  expect(kinds.get('neither header')).toEqual(new Set(['missing_header']));
  expect(kinds.get('an old timestamp')).toEqual(new Set(['too_old']));
  expect(kinds.get('a timestamp of the future')).toEqual(new Set(['too_new']));
  expect(kinds.get('another secret')).toEqual(new Set(['bad_signature']));
  expect(kinds.get('a body that was written again')).toEqual(new Set(['bad_signature']));
  // The signature of a boundary that moved by three digits is right; its body is no JSON.
  expect(kinds.get('a boundary that moved to the left')).toContain('not_json');
});

test('the window holds on both sides to the millisecond', () => {
  const request = signed(BODY, '1748736000000');
  expect(read(request, {}, NOW + 300_000)).toMatchObject({ event: EVENT });
  expect(read(request, {}, NOW + 300_001)).toEqual({ refused: 'too_old' });
  expect(read(request, {}, NOW - 300_000)).toMatchObject({ event: EVENT });
  expect(read(request, {}, NOW - 300_001)).toEqual({ refused: 'too_new' });
});

test('with a window of 0 the age is not checked, the form of the timestamp is', () => {
  expect(read(signed(BODY, '1000000000'), { windowMs: 0 })).toMatchObject({ event: EVENT });
  expect(read(signed(BODY, '12'), { windowMs: 0 })).toEqual({ refused: 'bad_timestamp' });
});

test('while the secret is being replaced the old one counts too', () => {
  const request = signed(BODY, '1748736000', OLD_SECRET);
  expect(read(request)).toEqual({ refused: 'bad_signature' });
  expect(read(request, { secrets: [SECRET, OLD_SECRET] })).toMatchObject({ event: EVENT });
});

test('keys beyond the five are ignored and counted', () => {
  const more = JSON.stringify({ ...EVENT, sent_by: 'v3', nested: { user_id: 'x' } });
  expect(read(signed(more))).toMatchObject({ event: EVENT, unknownKeys: 2 });
});

test('a data type that nobody knows is an event all the same', () => {
  expect(read(signed(JSON.stringify({ ...EVENT, data_type: 'daily_mood' })))).toMatchObject({
    event: { ...EVENT, data_type: 'daily_mood' },
  });
});

test.each(['', 'a b', 'sleep\n', '\u001b[2Jsleep', 'sleep\u202e', 'daily-mood', 'x'.repeat(65)])(
  'a data type that is no word of the known form: %j',
  type => {
    expect(read(signed(JSON.stringify({ ...EVENT, data_type: type })))).toEqual({ refused: 'wrong_fields' });
  },
);

test.each([
  ['nothing', '', 'not_json'],
  ['text', 'hello', 'not_json'],
  ['JSON that ends early', BODY.slice(0, -1), 'not_json'],
  ['a byte order mark', `\ufeff${BODY}`, 'not_json'],
  ['two values', `${BODY}${BODY}`, 'not_json'],
  ['bytes that are no UTF-8', Buffer.from(BODY.replace('c6b1', 'c\u00fcb1'), 'latin1'), 'not_json'],
  ['a list', `[${BODY}]`, 'wrong_fields'],
  ['null', 'null', 'wrong_fields'],
  ['a number', '7', 'wrong_fields'],
  ['an empty object', '{}', 'wrong_fields'],
  ['a number as user', BODY.replace('"c6b1c8a4"', '7'), 'wrong_fields'],
  ['an empty identifier', BODY.replace(EVENT.object_id, ''), 'wrong_fields'],
  ['an identifier without end', BODY.replace(EVENT.object_id, 'x'.repeat(1_025)), 'wrong_fields'],
  ['a missing event_time', BODY.replace('event_time', 'time'), 'wrong_fields'],
  ['null as data type', BODY.replace('"sleep"', 'null'), 'wrong_fields'],
  ['a list as operation', BODY.replace('"update"', '["update"]'), 'wrong_fields'],
  ['another operation', BODY.replace('"update"', '"upsert"'), 'unknown_event_type'],
  ['an operation in upper case', BODY.replace('"update"', '"UPDATE"'), 'unknown_event_type'],
  ['fields of a prototype', `{"__proto__":${BODY}}`, 'wrong_fields'],
])('%s, signed by the service, is refused as %s', (_, body, reason) => {
  expect(read(signed(body))).toEqual({ refused: reason });
});
