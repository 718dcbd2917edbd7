import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { QueueUnavailable } from '../../src/queue/queues.ts';
import { ReplayCache } from '../../src/receiver/replay-cache.ts';
import { randomFrom } from '../support/random-documents.ts';
import { forgeries } from './mutations.ts';
import { openWebhook, TOKEN } from './open-webhook.ts';
import { post, RawConnection, requestText } from './raw.ts';
import { BODY, EVENT, headersOf, NOW, OLD_SECRET, SECRET, signed } from './signed.ts';

const eventOf = (changes: object) => JSON.stringify({ ...EVENT, ...changes });

test('the challenge comes back as JSON to who knows our word', async () => {
  const { receiver } = await openWebhook();
  const response = await fetch(`${receiver.url}/webhook?verification_token=${TOKEN}&challenge=${encodeURIComponent('<b>é+ "')}`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(response.headers.get('x-content-type-options')).toBe('nosniff');
  expect(await response.text()).toBe(String.raw`{"challenge":"<b>é+ \""}`);
});

test.each([
  ['another word', 'verification_token=a-word-of-theirs&challenge=c', 401, 'bad_token'],
  ['our word and more', `verification_token=${TOKEN}x&challenge=c`, 401, 'bad_token'],
  ['its beginning', 'verification_token=a-word&challenge=c', 401, 'bad_token'],
  ['an empty word', 'verification_token=&challenge=c', 401, 'bad_token'],
  ['no word', 'challenge=c', 401, 'bad_token'],
  ['nothing at all', '', 401, 'bad_token'],
  ['our word twice', `verification_token=${TOKEN}&verification_token=${TOKEN}&challenge=c`, 401, 'bad_token'],
  ['our word as a list', `verification_token[]=${TOKEN}&challenge=c`, 401, 'bad_token'],
  ['no challenge', `verification_token=${TOKEN}`, 400, 'bad_challenge'],
  ['an empty challenge', `verification_token=${TOKEN}&challenge=`, 400, 'bad_challenge'],
  ['two challenges', `verification_token=${TOKEN}&challenge=a&challenge=b`, 400, 'bad_challenge'],
  ['a challenge of 513 characters', `verification_token=${TOKEN}&challenge=${'c'.repeat(513)}`, 400, 'bad_challenge'],
])('a verification with %s is refused', async (_, query, status, reason) => {
  const { receiver } = await openWebhook();
  const response = await fetch(`${receiver.url}/webhook?${query}`);
  expect([response.status, await response.text()]).toEqual([status, `{"detail":"${reason}"}`]);
  expect(receiver.refusals()).toEqual({ [reason]: 1 });
});

test('a challenge of 512 characters is taken', async () => {
  const { receiver } = await openWebhook();
  const response = await fetch(`${receiver.url}/webhook?verification_token=${TOKEN}&challenge=${'c'.repeat(512)}`);
  expect(response.status).toBe(200);
});

test('an event is accepted and then answered', async () => {
  let release = () => {};
  const held = new Promise<void>(resolve => {
    release = resolve;
  });
  const { receiver, send } = await openWebhook({ accept: () => held });
  let answered = false;
  const answer = send(signed(BODY)).then(response => {
    answered = true;
    return response;
  });
  await sleep(100);
  expect([answered, receiver.accepted()]).toEqual([false, 0]);
  release();
  const response = await answer;
  expect([response.status, await response.text(), receiver.accepted()]).toEqual([204, '', 1]);
});

test('it arrives as it was sent, without keys that are not of it', async () => {
  const { receiver, events, send } = await openWebhook();
  const event = { ...EVENT, object_id: '../ü\u0000/😀', data_type: 'daily_mood' };
  expect((await send(signed(JSON.stringify({ ...event, more: 1, and: 2 })))).status).toBe(204);
  expect(events).toEqual([event]);
  expect(receiver.unknownKeys()).toBe(2);
});

test.each(['application/json', 'text/plain; charset=latin1', 'application/x-www-form-urlencoded', 'no type at all', '', undefined])(
  'an event may say of its content %j',
  async type => {
    const { receiver, events } = await openWebhook();
    const connection = await RawConnection.open(receiver.url);
    const request = signed(BODY);
    const headers = headersOf(request).filter(([name]) => name !== 'Content-Type');
    if (type !== undefined) headers.push(['Content-Type', type]);
    expect((await connection.ask(post({ headers, body: request.body })))?.status).toBe(204);
    expect(events).toEqual([EVENT]);
  },
);

test('a body in chunks is the same body', async () => {
  const { receiver, events } = await openWebhook();
  const connection = await RawConnection.open(receiver.url);
  const head = headersOf(signed(BODY)).map(([name, value]) => `${name}: ${value}\r\n`);
  const chunks = [BODY.slice(0, 7), BODY.slice(7)].map(part => `${part.length.toString(16)}\r\n${part}\r\n`);
  const answer = await connection.ask(
    `POST /webhook HTTP/1.1\r\n${head.join('')}Transfer-Encoding: chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`,
  );
  expect(answer?.status).toBe(204);
  expect(events).toEqual([EVENT]);
});

test('the prefix of the two headers is a setting', async () => {
  const { receiver, send } = await openWebhook({ headerPrefix: 'X-Ring-' });
  const request = signed(BODY);
  expect((await send(request)).status).toBe(401);
  const headers = { 'x-ring-timestamp': request.timestamp, 'x-ring-signature': request.signature };
  expect((await fetch(`${receiver.url}/webhook`, { method: 'POST', headers, body: BODY })).status).toBe(204);
});

test('both secrets sign while one replaces the other', async () => {
  const { events, send } = await openWebhook({ secrets: [SECRET, OLD_SECRET] });
  expect((await send(signed(BODY, '1748736000', OLD_SECRET))).status).toBe(204);
  expect((await send(signed(BODY, '1748736001', SECRET))).status).toBe(204);
  expect((await send(signed(BODY, '1748736002', 'another'))).status).toBe(401);
  expect(events).toHaveLength(2);
});

test('64 kB is the most, announced or not', async () => {
  const { receiver, events, send } = await openWebhook();
  const body = (bytes: number) => `${BODY.slice(0, -1)},"more":"${'x'.repeat(bytes - BODY.length - 10)}"}`;
  expect((await send(signed(body(65_536)))).status).toBe(204);
  const announced = await (await RawConnection.open(receiver.url)).ask(
    `POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\n${'x'.repeat(1_000)}`,
  );
  expect([announced?.status, announced?.body]).toEqual([413, '{"detail":"too_large"}']);
  const chunk = `8000\r\n${'x'.repeat(0x8000)}\r\n`;
  const chunked = await (await RawConnection.open(receiver.url)).ask(
    `POST /webhook HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(3)}`,
  );
  expect(chunked?.status).toBe(413);
  expect(events).toHaveLength(1);
  expect(receiver.refusals()).toEqual({ too_large: 2 });
});

test('other methods are told which there are, also with a body and a query', async () => {
  const { receiver } = await openWebhook();
  for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD', 'PROPFIND']) {
    const response = await fetch(`${receiver.url}/webhook?a=b`, { method, ...(method === 'PUT' ? { body: '{broken' } : {}) });
    expect([method, response.status, response.headers.get('allow')]).toEqual([method, 405, 'GET, POST']);
  }
  expect(receiver.refusals()).toEqual({ wrong_method: 6 });
  expect((await fetch(`${receiver.url}/webhook/`)).status).toBe(404);
  expect((await fetch(`${receiver.url}/WEBHOOK`)).status).toBe(404);
});

test('none of 3,000 forgeries is accepted over HTTP', async () => {
  const { receiver, events, lines } = await openWebhook();
  let connection = await RawConnection.open(receiver.url);
  const statuses = new Map<number | undefined, number>();
  for (const { kind, headers, body } of forgeries(randomFrom(7), 3_000)) {
    const answer = await connection.ask(post({ headers, body }));
    const status = answer?.status;
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    if (status !== 401 && status !== 400) throw new Error(`${kind}: ${status}`);
    // After what is no HTTP nothing more is read.
    if (status === 400) connection = await RawConnection.open(receiver.url);
  }
  expect([events.length, receiver.accepted()]).toEqual([0, 0]);
  expect(statuses.get(401)).toBeGreaterThan(2_800);
  const counted = Object.values(receiver.refusals()).reduce((sum, count) => sum + count, 0);
  // The others were no HTTP, and never became a request.
  expect(counted).toBeGreaterThan(2_900);
  // A line for each reason, not for each request.
  expect(lines.length).toBe(Object.keys(receiver.refusals()).length);
});

test('an exact repetition is answered like the first and changes nothing; afterwards it is too old', async () => {
  const { receiver, clock, events, send } = await openWebhook();
  const request = signed(BODY);
  expect((await send(request)).status).toBe(204);
  clock.ms = NOW + 1_000;
  expect((await send(request)).status).toBe(204);
  expect((await send({ ...request, signature: request.signature.toLowerCase() })).status).toBe(204);
  clock.ms = NOW + 300_000;
  expect((await send(request)).status).toBe(204);
  expect([events.length, receiver.accepted(), receiver.repeated()]).toEqual([1, 1, 3]);
  clock.ms = NOW + 300_001;
  expect((await send(request)).status).toBe(401);
  expect(receiver.refusals()).toEqual({ too_old: 1 });
});

test('an event of the far side of the window is known for as long as it is valid', async () => {
  const { clock, events, send } = await openWebhook();
  const request = signed(BODY);
  clock.ms = NOW - 300_000;
  expect((await send(request)).status).toBe(204);
  clock.ms = NOW + 300_000;
  expect((await send(request)).status).toBe(204);
  expect(events).toHaveLength(1);
});

test('the same event with a new timestamp is an event of its own', async () => {
  const { events, send } = await openWebhook();
  expect((await send(signed(BODY, '1748736000'))).status).toBe(204);
  expect((await send(signed(BODY, '1748736001'))).status).toBe(204);
  expect(events).toHaveLength(2);
});

test('two equal requests at once share one acceptance, and its failure', async () => {
  let calls = 0;
  let settle: { resolve(): void; reject(error: Error): void } | undefined;
  const { send } = await openWebhook({
    accept: () => {
      calls += 1;
      return new Promise<void>((resolve, reject) => {
        settle = { resolve, reject };
      });
    },
  });
  const request = signed(BODY);
  const both = Promise.all([send(request), send(request), sleep(100).then(() => settle?.reject(new QueueUnavailable('away; try again')))]);
  expect((await both).slice(0, 2).map(response => (response as Response).status)).toEqual([503, 503]);
  expect(calls).toBe(1);
  // What failed was not noted: it may come again.
  const again = Promise.all([send(request), send(request), sleep(100).then(() => settle?.resolve())]);
  expect((await again).slice(0, 2).map(response => (response as Response).status)).toEqual([204, 204]);
  expect(calls).toBe(2);
});

test('without a window repetitions are known for five minutes', async () => {
  const { clock, events, send } = await openWebhook({ windowMs: 0 });
  const request = signed(BODY, '1000000000');
  expect((await send(request)).status).toBe(204);
  clock.ms += 300_000;
  expect((await send(request)).status).toBe(204);
  expect(events).toHaveLength(1);
  clock.ms += 3_600_000;
  expect((await send(request)).status).toBe(204);
  expect(events).toHaveLength(2);
});

test('the memory of repetitions is bounded, whatever comes', () => {
  const known = new ReplayCache({ windowMs: 300_000, now: () => NOW, most: 100 });
  for (let i = 0; i < 1_000; i++) known.add(`signature ${i}`);
  const kept = Array.from({ length: 1_000 }, (_, i) => known.has(`signature ${i}`));
  expect(kept.filter(Boolean).length).toBeLessThanOrEqual(200);
  expect(kept.slice(900)).toEqual(Array.from({ length: 100 }, () => true));
});

test('an event that cannot be kept is 503, for the sender to try again', async () => {
  const { receiver, lines, send } = await openWebhook({
    accept: () => Promise.reject(new QueueUnavailable('the queue gives no answer; try again')),
  });
  const response = await send(signed(BODY));
  expect([response.status, response.headers.get('retry-after'), await response.text()]).toEqual([503, '5', '{"detail":"unavailable"}']);
  expect([receiver.accepted(), receiver.refusals()]).toEqual([0, { unavailable: 1 }]);
  expect(lines.map(line => JSON.parse(line))).toMatchObject([{ reason: 'unavailable', because: 'the queue gives no answer; try again' }]);
});

test('an error that is not ours is 503 too, and its message stays out of the log', async () => {
  const { lines, send } = await openWebhook({ accept: () => Promise.reject(new RangeError(`no place for ${EVENT.object_id}`)) });
  expect((await send(signed(BODY))).status).toBe(503);
  expect(lines.map(line => JSON.parse(line))).toMatchObject([{ reason: 'unavailable', because: 'RangeError' }]);
});

test('whatever becomes of an event, its sender has an answer within two seconds', async () => {
  const { receiver, send } = await openWebhook({ accept: () => new Promise(() => {}) });
  const start = performance.now();
  const responses = await Promise.all(Array.from({ length: 20 }, (_, i) => send(signed(eventOf({ object_id: `n-${i}` })))));
  expect(performance.now() - start).toBeLessThan(2_000);
  expect(new Set(responses.map(response => response.status))).toEqual(new Set([503]));
  expect(receiver.refusals()).toEqual({ unavailable: 20 });
});

test('events of a subscription that is to end are answered 410, genuine ones only', async () => {
  const gone: unknown[] = [];
  const { events, receiver, send } = await openWebhook({
    isGone: event => event.data_type === 'sleep',
    noteGone: event => void gone.push(event),
  });
  expect((await send(signed(BODY, '1748736000', 'another'))).status).toBe(401);
  expect(gone).toEqual([]);
  expect((await send(signed(BODY))).status).toBe(410);
  expect((await send(signed(eventOf({ data_type: 'session' })))).status).toBe(204);
  expect([gone, events, receiver.refusals()]).toEqual([[EVENT], [{ ...EVENT, data_type: 'session' }], { bad_signature: 1, gone: 1 }]);
});

test('a reason has a line once a minute with how many there were, the rest at the end', async () => {
  const { receiver, clock, lines, send } = await openWebhook();
  const bad = () => send(signed(BODY, '1748736000', 'another'));
  const told = () => lines.map(line => JSON.parse(line)).map(({ reason, count }) => `${reason} ${count}`);
  for (let i = 0; i < 5; i++) await bad();
  expect(told()).toEqual(['bad_signature 1']);
  clock.ms += 60_000;
  for (let i = 0; i < 3; i++) await bad();
  expect(told()).toEqual(['bad_signature 1', 'bad_signature 5']);
  await receiver.close();
  expect(told()).toEqual(['bad_signature 1', 'bad_signature 5', 'bad_signature 2']);
  expect(receiver.refusals()).toEqual({ bad_signature: 8 });
});

test('nothing of a request reaches the log, accepted or refused, at any level', async () => {
  const { receiver, lines, send } = await openWebhook();
  const request = signed(BODY);
  await send(request);
  await send(request);
  await send({ ...request, signature: 'F'.repeat(64) });
  await send(signed(BODY.replace('user_id', 'somebody')));
  await fetch(`${receiver.url}/webhook?verification_token=${TOKEN}&challenge=a-challenge`);
  await fetch(`${receiver.url}/webhook?verification_token=not-the-word&challenge=a-challenge`);
  await fetch(`${receiver.url}/webhook?secret-query`, { method: 'PUT' });
  await fetch(`${receiver.url}/webhook%?secret-query`);
  const connection = await RawConnection.open(receiver.url);
  await connection.ask(requestText('POST /webhook?secret-query HTTP/9.9', headersOf(request), request.body));
  await receiver.close();
  expect(lines.length).toBeGreaterThan(3);
  for (const word of [
    TOKEN,
    SECRET,
    'not-the-word',
    'a-challenge',
    'secret-query',
    EVENT.object_id,
    EVENT.user_id,
    EVENT.event_time,
    request.signature,
    request.timestamp,
    'F'.repeat(64),
    'somebody',
  ]) {
    expect(lines.join('').toLowerCase()).not.toContain(word.toLowerCase());
  }
});
