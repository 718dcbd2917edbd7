import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startFaultService } from '../support/fault-service.ts';
import { openHarness } from '../support/harness.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();
const NOON = Date.parse('2025-03-10T12:00:00Z');
const HEART_RATE = '/v2/usercollection/heartrate';
const SLEEP = '/v2/usercollection/sleep';
const LIMITED = { status: 429, headers: { 'retry-after': '50' }, json: { detail: 'too many' } };
/** Fifteen windows of heart rate for each. */
const SPRING = { from: '2023-04-21', to: '2024-06-13', collections: ['heart_rate'] };
const SLOW = ['ada', 'ben', 'cleo'];

/** A service that asks three accounts to wait, once they have been answered so often; they wait until they are woken. */
async function setUp(name: string, answered: number) {
  let open = false;
  const answers = new Map<string, number>();
  const asSlow = (token: string | undefined) => {
    const count = (answers.get(token!) ?? 0) + 1;
    answers.set(token!, count);
    return SLOW.some(name => token === `token-${name}`) && count > answered && !open ? LIMITED : undefined;
  };
  const service = await startFaultService({
    '/v2/usercollection/personal_info': { json: { id: 'x' } },
    [HEART_RATE]: ({ token, query }) => asSlow(token) ?? { json: { data: [], next_token: query.has('next_token') ? null : 'second' } },
    [SLEEP]: ({ token }) => asSlow(token) ?? { json: { data: [], next_token: null } },
  });
  onTestFinished(() => service.close());
  const held: (() => void)[] = [];
  const sleep = (_: number, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      if (open) resolve();
      held.push(resolve);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  const harness = await openHarness(join(folder, name), service.url, { now: () => NOON, client: { sleep } });
  return {
    harness,
    service,
    held,
    wake() {
      open = true;
      for (const resolve of held) resolve();
    },
  };
}

test.each([
  ['before its first page', 0],
  ['in the middle of a window', 9],
])(
  'three accounts that are asked to wait, %s, hold up nobody else',
  async (_, answered) => {
    const { harness, service, held, wake } = await setUp(`bulk-${answered}`, answered);
    await harness.add([...SLOW, 'dan', 'eva'].map(name => ({ name, token: `token-${name}` })));
    const slow = harness.backfill({ ...SPRING, users: SLOW });
    await until('the three wait', () =>
      SLOW.every(name => held.length >= 3 && service.asked.some(({ token }) => token === `token-${name}`)),
    );
    await until('all that they may do waits', () => held.length >= 12);
    const quick = await harness.backfill({ ...SPRING, users: ['dan', 'eva'] });
    expect(quick).toMatchObject({ state: 'complete', windows: { planned: 30, done: 30, failed: 0 }, requests: 60 });
    wake();
    expect(await slow).toMatchObject({ state: 'complete', windows: { planned: 45, done: 45, failed: 0 } });
  },
  30_000,
);
