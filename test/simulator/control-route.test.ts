import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { TokenState } from '../../src/service/tokens.ts';
import { createControl } from '../../src/simulator/control-route.ts';
import { openControlSecret } from '../../src/simulator/control-secret.ts';
import { createFaultSwitches } from '../../src/simulator/faults.ts';
import { makeFolder, openTimeline, userIds } from './open-timeline.ts';

async function start() {
  const { timeline, told } = openTimeline();
  const faults = createFaultSwitches();
  const states = new Map<string, TokenState>();
  const control = createControl({
    timeline: timeline,
    faults,
    isSecret: given => given === 's3cret',
    setTokenState(userId, state) {
      const before = states.get(userId) ?? 'active';
      const after = before === 'revoked' ? before : state;
      states.set(userId, after);
      return { before, after };
    },
    subscriptions: () => 4,
  });
  const url = await control.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => control.close());
  async function ask(path: string, body?: unknown, secret: string | null = 's3cret') {
    const response = await fetch(`${url}${path}`, {
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(secret === null ? {} : { authorization: `Bearer ${secret}` }),
      },
    });
    // biome-ignore lint/suspicious/noExplicitAny: answers of any shape.
    return { status: response.status, body: (await response.json()) as any };
  }
  return { ask, timeline, told, faults, states, ids: userIds(timeline) };
}

test('it says where the clock stands, who has synced, which faults are on', async () => {
  const { ask, ids } = await start();
  expect(await ask('/control')).toEqual({
    status: 200,
    body: {
      clock: { now: '2025-02-01T09:00:00.000Z', speed: 0 },
      people: ['ada', 'ben', 'cleo'].map((name, i) => ({ name, user_id: ids[i], last_sync: null, last_upload: null })),
      faults: {},
      untold_events: 0,
      subscriptions: 4,
    },
  });
});

test('without its secret it tells and does nothing', async () => {
  const { ask, told, faults } = await start();
  for (const secret of [null, '', 'wrong', 's3cre', 's3crett']) {
    for (const [path, body] of [
      ['/control', undefined],
      ['/control/clock', { advance: 3600 }],
      ['/control/sync', { person: 'ada' }],
      ['/control/faults', { empty: true }],
      ['/elsewhere', undefined],
    ] as const) {
      expect(await ask(path, body, secret)).toMatchObject({ status: 401, body: { detail: expect.stringContaining('control secret') } });
    }
  }
  expect([told, faults.shown()]).toEqual([[], {}]);
});

test('the clock is moved and set running; what is due happens in between', async () => {
  const { ask, told } = await start();
  const moved = await ask('/control/clock', { advance: 86_400 });
  expect([moved.status, moved.body.clock]).toEqual([200, { now: '2025-02-02T09:00:00.000Z', speed: 0 }]);
  expect(moved.body.people[0].last_sync).toBe('2025-02-02T07:59:25.000Z');
  expect(told.length).toBeGreaterThan(10);
  expect((await ask('/control/clock', { speed: 600 })).body.clock.speed).toBe(600);
});

test('a ring syncs, a nap is recorded and deleted, by name or by user id', async () => {
  const { ask, ids } = await start();
  await ask('/control/clock', { advance: 3 * 86_400 });
  const synced = await ask('/control/sync', { person: 'cleo' });
  expect(synced.body.events.every((event: { user_id: string }) => event.user_id === ids[2])).toBe(true);
  const { status, body: nap } = await ask('/control/nap', { person: ids[0], minutes: 45 });
  expect(status).toBe(200);
  expect(nap.events).toContainEqual(expect.objectContaining({ event_type: 'create', data_type: 'sleep', object_id: nap.id }));
  const deleted = await ask('/control/edit', { person: 'ada', kind: 'delete-sleep', day: nap.day, id: nap.id });
  expect(deleted.body.events).toContainEqual(expect.objectContaining({ event_type: 'delete', object_id: nap.id, user_id: ids[0] }));
  expect(await ask('/control/edit', { person: 'ada', kind: 'delete-sleep', day: nap.day, id: nap.id })).toMatchObject({ status: 404 });
});

test('of a token it says what it was and what became of it', async () => {
  const { ask, states, ids } = await start();
  const become = async (person: string, state: string) => {
    const { status, body } = await ask('/control/token', { person, state });
    return [status, body];
  };
  expect(await become('ben', 'lapsed')).toEqual([200, { person: 'ben', user_id: ids[1], before: 'active', state: 'lapsed' }]);
  expect(await become(ids[1]!, 'expired')).toEqual([200, { person: 'ben', user_id: ids[1], before: 'lapsed', state: 'expired' }]);
  expect(await become('ben', 'active')).toEqual([200, { person: 'ben', user_id: ids[1], before: 'expired', state: 'active' }]);
  expect(await become('ben', 'revoked')).toEqual([200, { person: 'ben', user_id: ids[1], before: 'active', state: 'revoked' }]);
  expect(await become('ben', 'active')).toEqual([
    409,
    { detail: 'The token of ben is revoked, and stays so; --new-tokens makes a new one.' },
  ]);
  expect(await become('zoe', 'active')).toEqual([404, { detail: 'No person is called "zoe".' }]);
  expect([...states]).toEqual([[ids[1], 'revoked']]);
});

test('faults go on and off', async () => {
  const { ask, faults } = await start();
  const on = await ask('/control/faults', { status: '503/0.5', slow: 20, empty: true, lose: 0.25 });
  expect(on.body.faults).toEqual({ status: '503/0.5', slow: '20', empty: true, lose: '0.25' });
  expect(faults.get('lose')).toBe(0.25);
  expect((await ask('/control/faults', { status: null, empty: false })).body.faults).toEqual({ slow: '20', lose: '0.25' });
});

test.each([
  ['/control/clock', {}, ['body'], 'speed, advance or both'],
  ['/control/clock', { speed: -1 }, ['body', 'speed'], '>=0'],
  ['/control/clock', { advance: 1.5 }, ['body', 'advance'], 'int'],
  ['/control/clock', { faster: 2 }, ['body'], 'faster'],
  ['/control/nap', { person: 'ada', minutes: 5 }, ['body', 'minutes'], '>=15'],
  ['/control/token', { person: 'ada', state: 'tired' }, ['body', 'state'], 'active'],
  ['/control/edit', { person: 'ada', kind: 'retype-sleep', day: '2025-02-01', id: 'x', type: 'snooze' }, ['body', 'type'], 'late_nap'],
  ['/control/edit', { person: 'ada', kind: 'delete-sleep', day: '2025-02-30', id: 'x' }, ['body', 'day'], 'YYYY-MM-DD'],
  ['/control/edit', { person: 'ada', kind: 'record-nap', day: '2025-02-01', start: 0, end: 1 }, ['body', 'kind'], '/control/nap'],
  ['/control/faults', { slow: 'very' }, ['body', 'slow'], 'slow=very is no fault: expected slow=MS'],
  ['/control/faults', { sulk: true }, ['body', 'sulk'], 'no fault is called "sulk"'],
])('%s with %o is 422 and says what is wrong', async (path, body, loc, message) => {
  const { ask, told, faults } = await start();
  const answer = await ask(path, body);
  expect(answer.status).toBe(422);
  expect(answer.body.detail).toContainEqual(expect.objectContaining({ loc, msg: expect.stringContaining(message) }));
  expect([told, faults.shown()]).toEqual([[], {}]);
});

test('unknown people and routes are 404, text that is no JSON is 400', async () => {
  const { ask } = await start();
  expect(await ask('/control/sync', { person: 'zoe' })).toEqual({ status: 404, body: { detail: 'No person is called "zoe".' } });
  expect((await ask('/control/elsewhere', {})).status).toBe(404);
  expect((await ask('/control/sync')).status).toBe(404);
});

test('a body with a wrong fault among good ones switches none on', async () => {
  const { ask, faults } = await start();
  expect((await ask('/control/faults', { empty: true, slow: 'very' })).status).toBe(422);
  expect(faults.shown()).toEqual({});
});

test('its secret is told once, kept as a hash in a file of its owner, and replaced when asked for', () => {
  const folder = makeFolder();
  const first = openControlSecret(folder, false);
  expect(first.secret).toMatch(/^rc_[\w-]{43}$/);
  expect([first.isIt(first.secret!), first.isIt(`${first.secret}x`), first.isIt('')]).toEqual([true, false, false]);
  const path = join(folder, 'control.json');
  expect(readFileSync(path, 'utf8')).not.toContain(first.secret!.slice(3));
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const second = openControlSecret(folder, false);
  expect([second.secret, second.isIt(first.secret!)]).toEqual([null, true]);
  const third = openControlSecret(folder, true);
  expect([third.isIt(third.secret!), third.isIt(first.secret!)]).toEqual([true, false]);
});
