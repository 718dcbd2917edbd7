import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Subscriptions } from '../../../src/service/webhooks/subscriptions.ts';
import { makeFolder } from './webhook-service.ts';

const DAY = 86_400_000;
const CLIENT = 'the-client';
const wanted = { callback_url: 'https://example.com/hook', event_type: 'create', data_type: 'sleep' } as const;
const agreed = async () => {};
const refused = async () => {
  throw new Error('it did not return the challenge');
};

/** Subscriptions with a clock that the test moves. */
function open(folder = makeFolder(), start = '2025-03-10T12:00:00.000Z') {
  let ms = Date.parse(start);
  const subscriptions = new Subscriptions(folder, { lifetimeMs: 90 * DAY, now: () => ms });
  return {
    folder,
    subscriptions,
    pass: (days: number) => {
      ms += days * DAY;
    },
    /** As they lie in the file. */
    stored: (): { state: string; since: string; expiration_time: string; [key: string]: unknown }[] =>
      JSON.parse(readFileSync(join(folder, 'subscriptions.json'), 'utf8')).subscriptions,
  };
}

/** A verification that ends when the test says so. */
function held() {
  let settle: { resolve: () => void; reject: (error: Error) => void } | undefined;
  const verify = () => new Promise<void>((resolve, reject) => (settle = { resolve, reject }));
  return { verify, agree: () => settle!.resolve(), refuse: (error = new Error('refused')) => settle!.reject(error) };
}

const statusOf = (work: () => unknown) => {
  try {
    work();
    return 200;
  } catch (error) {
    return (error as { status: number }).status;
  }
};
const living = (subscriptions: Subscriptions) => subscriptions.list(CLIENT).map(({ id }) => id);

test('none to awaiting verification to active: it waits while the callback is asked, and is active when that agrees', async () => {
  const { subscriptions, stored } = open();
  const verification = held();
  const creating = subscriptions.create(CLIENT, wanted, verification.verify);
  expect(stored().map(({ state }) => state)).toEqual(['awaiting_verification']);
  expect([living(subscriptions), subscriptions.listFor(wanted)]).toEqual([[], []]);
  verification.agree();
  const made = await creating;
  expect(made).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
    callback_url: 'https://example.com/hook',
    event_type: 'create',
    data_type: 'sleep',
    expiration_time: '2025-06-08T12:00:00.000Z',
    client_id: 'the-client',
    state: 'active',
    since: '2025-03-10T12:00:00.000Z',
  });
  expect(stored()).toEqual([made]);
  expect([living(subscriptions), subscriptions.listFor(wanted)]).toEqual([[made.id], [made]]);
});

test('awaiting verification to nothing: a callback that refuses leaves no trace, and the place is free again', async () => {
  const { subscriptions, stored } = open();
  await expect(subscriptions.create(CLIENT, wanted, refused)).rejects.toThrow('did not return the challenge');
  expect([stored(), living(subscriptions)]).toEqual([[], []]);
  await subscriptions.create(CLIENT, wanted, agreed);
  expect(living(subscriptions)).toHaveLength(1);
});

test('active to active by an update: what is given changes, the rest and the expiration stay', async () => {
  const { subscriptions, pass, stored } = open();
  const { id } = await subscriptions.create(CLIENT, wanted, agreed);
  pass(10);
  const verified: string[] = [];
  const note = async (url: string) => void verified.push(url);
  expect(await subscriptions.update(CLIENT, id, { event_type: 'delete' }, note)).toMatchObject({
    id,
    callback_url: 'https://example.com/hook',
    event_type: 'delete',
    data_type: 'sleep',
    state: 'active',
    expiration_time: '2025-06-08T12:00:00.000Z',
  });
  await subscriptions.update(CLIENT, id, { callback_url: 'https://example.org/new' }, note);
  expect(verified).toEqual(['https://example.com/hook', 'https://example.org/new']);
  expect(stored()).toMatchObject([{ id, callback_url: 'https://example.org/new', event_type: 'delete', data_type: 'sleep' }]);
});

test('an update whose callback refuses leaves the old state, and its place', async () => {
  const { subscriptions } = open();
  const made = await subscriptions.create(CLIENT, wanted, agreed);
  await expect(
    subscriptions.update(CLIENT, made.id, { callback_url: 'https://example.org/', data_type: 'session' }, refused),
  ).rejects.toThrow('did not return the challenge');
  expect(subscriptions.get(CLIENT, made.id)).toEqual(made);
  await subscriptions.create(CLIENT, { ...wanted, data_type: 'session' }, agreed);
});

test('active to active by a renewal: its whole time again from now', async () => {
  const { subscriptions, pass } = open();
  const { id } = await subscriptions.create(CLIENT, wanted, agreed);
  pass(89);
  expect(subscriptions.renew(CLIENT, id)).toMatchObject({ id, state: 'active', expiration_time: '2025-09-05T12:00:00.000Z' });
  pass(89);
  expect(living(subscriptions)).toEqual([id]);
});

test('active to cancelled by its client: unknown from then on, and its place is free', async () => {
  const { subscriptions, pass, stored } = open();
  const { id } = await subscriptions.create(CLIENT, wanted, agreed);
  pass(1);
  subscriptions.cancel(CLIENT, id);
  expect(stored()).toMatchObject([{ id, state: 'cancelled', since: '2025-03-11T12:00:00.000Z' }]);
  expect(subscriptions.listFor(wanted)).toEqual([]);
  for (const work of [() => subscriptions.get(CLIENT, id), () => subscriptions.renew(CLIENT, id), () => subscriptions.cancel(CLIENT, id)])
    expect(statusOf(work)).toBe(404);
  await expect(subscriptions.update(CLIENT, id, {}, agreed)).rejects.toMatchObject({ status: 404 });
  await subscriptions.create(CLIENT, wanted, agreed);
  expect(stored().map(({ state }) => state)).toEqual(['cancelled', 'active']);
});

test('active to cancelled by a 410 of its callback, once', async () => {
  const { subscriptions, pass, stored } = open();
  const { id } = await subscriptions.create(CLIENT, wanted, agreed);
  subscriptions.noteGone(id);
  pass(1);
  subscriptions.noteGone(id);
  subscriptions.noteGone('unknown');
  expect(stored()).toMatchObject([{ id, state: 'cancelled', since: '2025-03-10T12:00:00.000Z' }]);
  expect(subscriptions.find(id)).toBeUndefined();
});

test('active to expired after 90 days, to the millisecond: it delivers nothing, is unknown, and its place is free', async () => {
  const { subscriptions, pass, stored } = open();
  const { id } = await subscriptions.create(CLIENT, wanted, agreed);
  pass(90 - 1 / DAY);
  expect(subscriptions.listFor(wanted)).toHaveLength(1);
  pass(1 / DAY);
  expect([subscriptions.listFor(wanted), subscriptions.find(id), living(subscriptions)]).toEqual([[], undefined, []]);
  expect(stored()).toMatchObject([{ id, state: 'expired', since: '2025-06-08T12:00:00.000Z' }]);
  expect(statusOf(() => subscriptions.renew(CLIENT, id))).toBe(404);
  expect(statusOf(() => subscriptions.cancel(CLIENT, id))).toBe(404);
  await subscriptions.create(CLIENT, wanted, agreed);
  expect(stored().map(({ state }) => state)).toEqual(['expired', 'active']);
});

test('a restart keeps what is active and ended, and forgets what awaited its verification', async () => {
  const { folder, subscriptions } = open();
  const kept = await subscriptions.create(CLIENT, wanted, agreed);
  const gone = await subscriptions.create(CLIENT, { ...wanted, event_type: 'delete' }, agreed);
  subscriptions.cancel(CLIENT, gone.id);
  void subscriptions.create(CLIENT, { ...wanted, event_type: 'update' }, held().verify);
  const again = open(folder, '2025-03-20T12:00:00.000Z');
  expect(living(again.subscriptions)).toEqual([kept.id]);
  await again.subscriptions.create(CLIENT, { ...wanted, event_type: 'update' }, agreed);
  expect(again.stored().map(({ state }) => state)).toEqual(['active', 'cancelled', 'active']);
  expect(living(open(folder, '2025-06-08T12:00:00.000Z').subscriptions)).toHaveLength(1);
});

test('one for each operation, kind of data and client; one that awaits its verification counts, and so does an alias', async () => {
  const { subscriptions } = open();
  const verification = held();
  const first = subscriptions.create(CLIENT, { ...wanted, data_type: 'activity' }, verification.verify);
  const second = (clientId: string, data_type: string) => subscriptions.create(clientId, { ...wanted, data_type }, agreed);
  await expect(second(CLIENT, 'daily_activity')).rejects.toMatchObject({
    status: 409,
    detail: 'There is a subscription for create of daily_activity; update, renew or delete that one.',
  });
  verification.agree();
  await first;
  await expect(second(CLIENT, 'daily_activity')).rejects.toMatchObject({ status: 409 });
  await expect(second(CLIENT, 'activity')).rejects.toMatchObject({ status: 409 });
  await second('another-client', 'activity');
  await second(CLIENT, 'session');
  expect(subscriptions.listFor({ event_type: 'create', data_type: 'daily_activity' })).toHaveLength(2);
});

test('an update may not take the place of another, and holds the place that it is about to take', async () => {
  const { subscriptions } = open();
  const one = await subscriptions.create(CLIENT, wanted, agreed);
  const other = await subscriptions.create(CLIENT, { ...wanted, event_type: 'update' }, agreed);
  await expect(subscriptions.update(CLIENT, other.id, { event_type: 'create' }, agreed)).rejects.toMatchObject({ status: 409 });

  const verification = held();
  const moving = subscriptions.update(CLIENT, one.id, { event_type: 'delete' }, verification.verify);
  const create = (event_type: 'create' | 'delete') => subscriptions.create(CLIENT, { ...wanted, event_type }, agreed);
  await expect(create('delete')).rejects.toMatchObject({ status: 409 });
  await expect(create('create')).rejects.toMatchObject({ status: 409 });
  await expect(subscriptions.update(CLIENT, one.id, {}, agreed)).rejects.toMatchObject({ status: 409 });
  expect(subscriptions.listFor({ event_type: 'create', data_type: 'sleep' })).toHaveLength(1);
  verification.agree();
  await moving;
  await create('create');
  await expect(create('delete')).rejects.toMatchObject({ status: 409 });
});

test('a subscription that is cancelled while its update is being verified stays cancelled', async () => {
  const { subscriptions, stored } = open();
  const { id } = await subscriptions.create(CLIENT, wanted, agreed);
  const verification = held();
  const moving = subscriptions.update(CLIENT, id, { event_type: 'delete' }, verification.verify);
  subscriptions.cancel(CLIENT, id);
  verification.agree();
  await expect(moving).rejects.toMatchObject({ status: 404 });
  expect(stored()).toMatchObject([{ id, state: 'cancelled', event_type: 'create' }]);
});

test('another client’s subscription is unknown', async () => {
  const { subscriptions } = open();
  const { id } = await subscriptions.create(CLIENT, wanted, agreed);
  expect(subscriptions.list('another')).toEqual([]);
  for (const work of [
    () => subscriptions.get('another', id),
    () => subscriptions.renew('another', id),
    () => subscriptions.cancel('another', id),
  ])
    expect(statusOf(work)).toBe(404);
});

test('of those that ended the newest 200 are kept', async () => {
  const { subscriptions, stored } = open();
  const first = await subscriptions.create(CLIENT, wanted, agreed);
  const living = await subscriptions.create(CLIENT, { ...wanted, event_type: 'delete' }, agreed);
  subscriptions.cancel(CLIENT, first.id);
  for (let i = 0; i < 200; i++) subscriptions.cancel(CLIENT, (await subscriptions.create(CLIENT, wanted, agreed)).id);
  expect(stored().filter(({ state }) => state === 'cancelled')).toHaveLength(200);
  expect(stored().map(({ id }) => id)).not.toContain(first.id);
  expect(stored().map(({ id }) => id)).toContain(living.id);
});

test('a file that cannot be read is named, not replaced', async () => {
  const { folder, subscriptions } = open();
  await subscriptions.create(CLIENT, wanted, agreed);
  const { writeFileSync } = await import('node:fs');
  writeFileSync(join(folder, 'subscriptions.json'), '{"format":1,"subscriptions":[{}]}');
  expect(() => open(folder)).toThrow(/subscriptions\.json cannot be read/);
});
