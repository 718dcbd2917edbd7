import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Announcement, openDeliveries } from '../../jobs/deliver-event.ts';
import type { Operation } from '../../schema/webhook.ts';
import { createLog, silentLog } from '../../src/base/log.ts';
import { isSignedBy } from '../../src/base/signature.ts';
import { openQueues } from '../../src/queue/open.ts';
import type { Queues } from '../../src/queue/queues.ts';
import type { WebhookOptions } from '../../src/service/webhooks/webhooks.ts';
import { hasRedis, type RedisServer, startRedis } from '../queue/redis-server.ts';
import { agree, agreeThen, type Callback, startCallback } from '../service/webhooks/callback.ts';
import { makeFolder, openTestWebhooks } from '../service/webhooks/webhook-service.ts';
import { until } from '../support/until.ts';
import { isWhole } from '../support/whole.ts';

/** The retries of an hour take about 1.2 seconds. */
const FAST = 3_000;

const change = (id: string, event_type: Operation = 'create', data_type = 'sleep'): Announcement => ({
  eventId: `event-${id}`,
  event: { event_type, data_type, object_id: `object-${id}`, event_time: '2025-03-10T09:00:00+01:00', user_id: 'user-of-ada' },
});

const objects = (callback: Callback) => callback.events().map(event => (event as { object_id: string }).object_id);

describe.each(['embedded', 'redis'] as const)('deliveries, %s', kind => {
  describe.skipIf(kind === 'redis' && !hasRedis)('over a real queue', () => {
    let redis: RedisServer | undefined;
    let queues: Queues;
    const queueFolder = mkdtempSync(join(tmpdir(), 'ringneck-queue-'));
    const openQueue = () => openQueues({ url: redis?.url, folder: queueFolder, prefix: 'service', log: silentLog });
    beforeAll(async () => {
      if (kind === 'redis') redis = await startRedis();
      queues = await openQueue();
    });
    afterAll(async () => {
      await queues.close({ graceMs: 500 });
      await redis?.remove();
      rmSync(queueFolder, { recursive: true, force: true });
    });

    /** A service's deliveries, over the queues that all tests share: those of a client of its own, or of the one in `folder`. */
    async function open(options: Partial<WebhookOptions> & { folder?: string; delayMs?: number; timeScale?: number } = {}) {
      const folder = options.folder ?? makeFolder();
      const { delayMs = 0, timeScale = FAST, ...rest } = options;
      const logged: string[] = [];
      const log = createLog({ level: 'debug', pretty: false, stream: { write: line => void logged.push(line) } });
      const webhooks = openTestWebhooks({ ...rest, folder, timeScale: 1 });
      const { announce, close } = openDeliveries({
        ...{ queues, webhooks, delayMs, timeScale, log },
        folder: join(folder, 'deliveries'),
        random: () => 0.5,
      });
      onTestFinished(() => close({ graceMs: 0 }));
      return {
        folder,
        webhooks,
        logged,
        announce,
        close,
        queue: `deliver-${webhooks.client.id}`,
        counts: () => queues.counts(`deliver-${webhooks.client.id}`),
        async subscribe(callback_url: string, event_type: Operation = 'create', data_type = 'sleep') {
          const wanted = { callback_url, event_type, data_type };
          return (await webhooks.subscriptions.create(webhooks.client.id, wanted, async () => {})).id;
        },
      };
    }

    test('what is due survives a queue that was emptied, while nobody was there and while it waits', async () => {
      const callback = await startCallback();
      const first = await open({ delayMs: 1_500 });
      await first.subscribe(callback.url);
      await first.announce([change('1'), change('2')]);
      await until('they are queued', async () => (await first.counts()).delayed === 2);
      await first.close();
      await queues.queue(first.queue).obliterate({ force: true });
      const second = await open({ folder: first.folder, delayMs: 60_000 });
      await until('both are delivered', () => callback.received.length === 2);
      expect(objects(callback).sort()).toEqual(['object-1', 'object-2']);

      await second.announce([{ ...change('3'), delayMs: 2_000 - 60_000 }]);
      await until('it is queued', async () => (await second.counts()).delayed === 1);
      await queues.queue(second.queue).drain(true);
      await until('it is delivered', () => callback.received.length === 3);
      expect((await second.counts()).failed).toBe(0);
    });

    test('each class of failure is tried again 10 times and then given up, also with a restart in the middle', async () => {
      const [bad, broken, silent] = [
        await startCallback(agreeThen(404)),
        await startCallback(agreeThen(503)),
        await startCallback(() => {}),
      ];
      // Its own service, so that a slow machine makes no timeout of the other answers.
      const impatient = { folder: makeFolder(), timeoutMs: 100 };
      const patient = { folder: makeFolder() };
      const all = [bad, broken, silent];
      const [one, other] = [await open(patient), await open(impatient)];
      await one.subscribe(bad.url, 'create');
      await one.subscribe(broken.url, 'update');
      await other.subscribe(silent.url, 'delete');
      await one.announce([change('1', 'create'), change('2', 'update')]);
      await other.announce([change('3', 'delete')]);
      await until('some attempts', () => all.every(({ received }) => received.length >= 4));
      await Promise.all([one.close(), other.close()]);
      await queues.close();
      expect(all.every(({ received }) => received.length < 11)).toBe(true);

      queues = await openQueue();
      const [again, otherAgain] = [await open(patient), await open(impatient)];
      const givenUp = () => [...again.logged, ...otherAgain.logged].filter(line => line.includes('gave an event up'));
      await until('all are given up', () => givenUp().length === 3);
      const failures = givenUp().map(line => JSON.parse(line).failures);
      expect(failures).toEqual(expect.arrayContaining([{ '4xx': 10 }, { '5xx': 10 }, { timeout: 10 }]));
      expect(all.map(({ received }) => received.length)).toEqual([11, 11, 11]);
      expect([bad, broken, silent].map(callback => [...new Set(objects(callback))])).toEqual([['object-1'], ['object-2'], ['object-3']]);
      for (const { counts, webhooks } of [again, otherAgain]) {
        await until('the queue is empty', async () => (await counts()).active === 0);
        expect(await counts()).toEqual({ waiting: 0, active: 0, delayed: 0, failed: 0 });
        expect(webhooks.subscriptions.list(webhooks.client.id)).not.toEqual([]);
      }
    });

    test('an attempt that the end of the process cuts off is no failure and is made again', async () => {
      const callback = await startCallback(() => {});
      const first = await open();
      await first.subscribe(callback.url);
      await first.announce([change('1')]);
      await until('it is under way', () => callback.received.length === 1);
      await first.close({ graceMs: 100 });
      callback.answer = agree;
      const second = await open({ folder: first.folder });
      await until('it is made again', () => second.logged.some(line => line.includes('delivered an event')));
      expect(objects(callback)).toEqual(['object-1', 'object-1']);
      expect([...first.logged, ...second.logged].join('')).not.toContain('trying again later');
    });

    // Of what no restart is in each queue has its contract: test/queue/queues.test.ts.
    if (kind === 'redis' && !isWhole) return;

    test('a change is one signed POST to each active subscription of its operation and kind, after the delay', async () => {
      const [one, other] = [await startCallback(), await startCallback()];
      const { announce, subscribe, webhooks, logged } = await open({ delayMs: 500 });
      await subscribe(one.url, 'create', 'activity');
      await subscribe(other.url, 'update', 'daily_activity');
      await subscribe(other.url, 'create', 'sleep');
      const started = Date.now();
      await announce([change('1', 'create', 'daily_activity'), { ...change('2', 'create', 'daily_activity'), delayMs: 400 }]);
      await until('both', () => one.received.length === 2);
      expect([one.received[0]!.at - started >= 495, one.received[1]!.at - started >= 895]).toEqual([true, true]);
      expect(one.received[0]!.body).toBe(
        '{"event_type":"create","data_type":"activity","object_id":"object-1","event_time":"2025-03-10T09:00:00+01:00","user_id":"user-of-ada"}',
      );
      const { headers, body } = one.received[0]!;
      const [timestamp, signature] = [String(headers['x-service-timestamp']), String(headers['x-service-signature'])];
      expect(isSignedBy([webhooks.client.secret], timestamp, Buffer.from(body), signature)).toBe(true);
      expect(Math.abs(Number(timestamp) - one.received[0]!.at / 1000)).toBeLessThan(3);
      expect(other.received).toEqual([]);
      expect(logged.join('')).toContain('delivered an event');
      for (const secret of ['object-1', 'user-of-ada', webhooks.client.secret, one.url]) expect(logged.join('')).not.toContain(secret);
    });

    test('a change that is announced again is delivered once, whether the first is queued or done', async () => {
      const callback = await startCallback();
      const { announce, subscribe } = await open({ delayMs: 300 });
      await subscribe(callback.url);
      await announce([change('1'), change('1')]);
      await announce([change('1'), change('2')]);
      await until('both', () => callback.received.length === 2);
      await announce([change('1'), change('3')]);
      await until('the third', () => callback.received.length === 3);
      expect(objects(callback).sort()).toEqual(['object-1', 'object-2', 'object-3']);
    });

    test('what a version without an outbox left in the queue is delivered', async () => {
      const callback = await startCallback();
      const { subscribe, queue } = await open();
      const subscriptionId = await subscribe(callback.url);
      const data = { subscriptionId, event: change('1').event, failures: {} };
      await queues.add(queue, 'deliver', data, { jobId: `event-1-${subscriptionId}` });
      await until('it is delivered', () => callback.received.length === 1);
    });

    test('an id that no queue could hold is refused', async () => {
      const { announce } = await open();
      await expect(announce([{ ...change('1'), eventId: 'a:b' }])).rejects.toThrow('no id of an event: "a:b"');
    });

    test('what failed before is delivered once when the callback is well again', async () => {
      const callback = await startCallback((response, request, received) =>
        agreeThen([500, 404, 302, 500][received.length - 1] ?? 204)(response, request, received),
      );
      const { announce, subscribe, counts } = await open();
      await subscribe(callback.url);
      await announce([change('1')]);
      await until('five attempts', () => callback.received.length === 5);
      await until('it is done', async () => (await counts()).active + (await counts()).delayed === 0);
      expect(callback.received).toHaveLength(5);
      const gaps = callback.received.slice(1).map(({ at }, i) => at - callback.received[i]!.at);
      // Scaled: 5 ms after the first 5xx and the first 4xx, 10 ms after the second of each.
      expect([gaps[0]! >= 4, gaps[1]! >= 4, gaps[2]! >= 9, gaps[3]! >= 9]).toEqual([true, true, true, true]);
    });

    test.each([
      ['first', 1],
      ['fifth', 5],
    ])('a 410 on the %s attempt cancels the subscription, and what is queued for it is dropped', async (_name, attempt) => {
      const { announce, subscribe, webhooks, counts } = await open();
      const later = Array.from({ length: 20 }, (_, i) => ({ ...change(`later-${i}`), delayMs: 800 }));
      const callback = await startCallback(async (response, request, received) => {
        const isLast = received.length === attempt;
        // Only now: however slow the attempts were, these are queued when the answer comes, and not yet due.
        if (isLast) await announce(later);
        agreeThen(isLast ? 410 : 500)(response, request, received);
      });
      const other = await startCallback();
      const id = await subscribe(callback.url);
      await subscribe(other.url, 'update');
      await announce([{ ...change('other', 'update'), delayMs: 800 }, change('1')]);
      await until('it is cancelled', () => webhooks.subscriptions.find(id) === undefined);
      await until('the queue is empty', async () => (await counts()).active + (await counts()).delayed + (await counts()).waiting === 0);
      expect(objects(callback)).toEqual(Array.from({ length: attempt }, () => 'object-1'));
      expect(objects(other)).toEqual(['object-other']);
    });

    test('a 410 stops also those that are about to go: beside the 8 in flight nobody sends any more', async () => {
      const callback = await startCallback((...all) => void setTimeout(() => agreeThen(410)(...all), 100));
      const { announce, subscribe, counts } = await open();
      await subscribe(callback.url);
      await announce(Array.from({ length: 60 }, (_, i) => change(String(i))));
      await until('the queue is empty', async () => (await counts()).active + (await counts()).delayed + (await counts()).waiting === 0);
      expect(callback.received.length).toBeGreaterThanOrEqual(1);
      expect(callback.received.length).toBeLessThanOrEqual(8);
    });

    test('what is queued for a subscription that has expired, was deleted or asks for something else is dropped', async () => {
      const callback = await startCallback();
      let now = Date.now();
      const { announce, subscribe, webhooks, counts } = await open({ now: () => now, delayMs: 300 });
      const { subscriptions, client } = webhooks;
      await subscribe(callback.url, 'create');
      now += 89 * 86_400_000;
      const deleted = await subscribe(callback.url, 'update');
      const changed = await subscribe(callback.url, 'delete');
      await announce([change('1', 'create'), change('2', 'update'), change('3', 'delete')]);
      now += 86_400_000;
      subscriptions.cancel(client.id, deleted);
      await subscriptions.update(client.id, changed, { data_type: 'session' }, async () => {});
      await announce([change('4', 'delete', 'session')]);
      await until('the last', () => callback.received.length === 1);
      await until('the queue is empty', async () => (await counts()).active + (await counts()).delayed + (await counts()).waiting === 0);
      expect(objects(callback)).toEqual(['object-4']);
    });

    test('a receiver that never answers has 8 requests in flight and delays nobody else', async () => {
      let inFlight = 0;
      let most = 0;
      const dead = await startCallback(response => {
        most = Math.max(most, ++inFlight);
        response.on('close', () => inFlight--);
      });
      const well = await startCallback();
      const { announce, subscribe } = await open({ timeScale: 1 });
      await subscribe(dead.url, 'create');
      await subscribe(well.url, 'update');
      await announce(Array.from({ length: 60 }, (_, i) => change(`dead-${i}`, 'create')));
      await until('the dead one is full', () => inFlight === 8);
      const started = Date.now();
      await announce(Array.from({ length: 20 }, (_, i) => change(`well-${i}`, 'update')));
      await until('all of the other', () => well.received.length === 20);
      // The dead one holds its places for 10 seconds; all of that goes on meanwhile.
      expect([Date.now() - started < 8_000, inFlight]).toEqual([true, 8]);
      expect([most, new Set(objects(well)).size]).toEqual([8, 20]);
    });

    test.each([8, 10])('eight dead receivers with as many places delay nobody else either, each with %i events', async each => {
      const kinds = ['sleep', 'session', 'daily_sleep', 'daily_readiness', 'daily_activity', 'daily_spo2', 'sleep_time', 'daily_stress'];
      let inFlight = 0;
      const well = await startCallback();
      const { announce, subscribe } = await open({ timeScale: 1 });
      await subscribe(well.url, 'update', 'vo2_max');
      for (const kind of kinds) {
        const dead = await startCallback(response => {
          inFlight++;
          response.on('close', () => inFlight--);
        });
        await subscribe(dead.url, 'create', kind);
      }
      await announce(kinds.flatMap(kind => Array.from({ length: each }, (_, i) => change(`${kind}-${i}`, 'create', kind))));
      await until('all of them are full', () => inFlight === 64);
      const started = Date.now();
      await announce([change('well', 'update', 'vo2_max')]);
      await until('the other has its event', () => well.received.length === 1);
      // The dead ones hold their places for 10 seconds.
      expect([Date.now() - started < 3_000, inFlight]).toEqual([true, 64]);
    });

    test('a burst to one receiver arrives whole, each event once, up to 8 at a time', async () => {
      let inFlight = 0;
      let most = 0;
      const callback = await startCallback((response, ...rest) => {
        most = Math.max(most, ++inFlight);
        response.on('close', () => inFlight--);
        setTimeout(() => agree(response, ...rest), 10);
      });
      const { announce, subscribe, counts } = await open();
      await subscribe(callback.url);
      await announce(Array.from({ length: 150 }, (_, i) => change(String(i))));
      await until('all', () => callback.received.length >= 150);
      await until('the queue is empty', async () => (await counts()).active + (await counts()).delayed === 0);
      expect([callback.received.length, new Set(objects(callback)).size]).toEqual([150, 150]);
      expect(most).toBeGreaterThan(4);
      expect(most).toBeLessThanOrEqual(8);
    });

    test('an error of our own uses up no retry, and the delivery goes on when it is fixed', async () => {
      const callback = await startCallback(agreeThen(410));
      const { announce, subscribe, webhooks, folder } = await open();
      const id = await subscribe(callback.url);
      // As a disk that is full: the cancellation cannot be kept.
      rmSync(`${folder}/subscriptions.json`);
      mkdirSync(`${folder}/subscriptions.json`);
      await announce([change('1')]);
      await until('the first attempt', () => callback.received.length === 1);
      await sleep(100);
      expect(webhooks.subscriptions.find(id)).toBeDefined();
      rmSync(`${folder}/subscriptions.json`, { recursive: true });
      await until('it is cancelled', () => webhooks.subscriptions.find(id) === undefined);
      expect(callback.received).toHaveLength(2);
    });
  });
});

test.skipIf(!hasRedis)('two services at one Redis do not mix', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.remove());
  const open = async (callback: Callback) => {
    const webhooks = openTestWebhooks();
    const queues = await openQueues({ url: redis.url, folder: makeFolder(), prefix: 'service', log: silentLog });
    onTestFinished(() => queues.close({ graceMs: 500 }));
    await webhooks.subscriptions.create(
      webhooks.client.id,
      { callback_url: callback.url, event_type: 'create', data_type: 'sleep' },
      async () => {},
    );
    return openDeliveries({ queues, webhooks, folder: makeFolder(), delayMs: 0, timeScale: 1, log: silentLog });
  };
  const [one, other] = [await startCallback(), await startCallback()];
  const [first, second] = [await open(one), await open(other)];
  await first.announce(['1', '2', '3'].map(id => change(id)));
  await second.announce([change('1')]);
  await until('all', () => one.received.length === 3 && other.received.length === 1);
  await sleep(200);
  expect([objects(one).sort(), objects(other)]).toEqual([['object-1', 'object-2', 'object-3'], ['object-1']]);
});
