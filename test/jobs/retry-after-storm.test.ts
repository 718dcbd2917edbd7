import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startFetching } from '../../jobs/process-event.ts';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { startFaultService } from '../support/fault-service.ts';
import { openHarness } from '../support/harness.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';
import { isWhole } from '../support/whole.ts';

const folder = tempFolder();
const LIMITED = Array.from({ length: 30 }, (_, i) => `limited-${i}`);
const QUICK = ['dan', 'eva'];
const TOO_MANY = { status: 429, headers: { 'retry-after': '60' }, json: { detail: 'too many' } };
/** Fifteen windows of heart rate and some of sleep for each. */
const SPRING = { from: '2023-04-21', to: '2024-06-13', collections: ['heart_rate', 'sleep'] };
const EVENTS_EACH = 20;

describe.each([['embedded'], ...(hasRedis && isWhole ? [['redis']] : [])])(
  'thirty accounts that are all asked to wait a minute, queue %s,',
  kind => {
    async function setUp(name: string) {
      const redis = kind === 'redis' ? await startRedis() : undefined;
      if (redis) onTestFinished(() => redis.remove());
      let storm = false;
      const limit = (token: string | undefined) => (storm && token?.startsWith('limited') ? TOO_MANY : undefined);
      const service = await startFaultService({
        '/v2/usercollection/personal_info': ({ token }) => limit(token) ?? { json: { id: `service-${token}` } },
        '/v2/usercollection/*': ({ token }) => limit(token) ?? { json: { data: [], next_token: null } },
        '/v2/usercollection/daily_spo2/*': ({ token, path }) =>
          limit(token) ?? { json: { id: path.split('/').at(-1), day: '2024-06-13', spo2_percentage: { average: 97.5 } } },
      });
      onTestFinished(() => service.close());
      const settings = redis ? { queueUrl: redis.url } : {};
      const waiting = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { signal });
      const harness = await openHarness(join(folder, `${name}-${kind}`), service.url, {
        queue: 'embedded',
        settings,
        client: { sleep: waiting },
      });
      onTestFinished(() => harness.close());
      await harness.add([...LIMITED, ...QUICK].map(token => ({ name: token, token })));
      storm = true;
      return { harness, service };
    }

    test('hold up no window of others', async () => {
      const { harness } = await setUp('windows');
      const ending = new AbortController();
      const run = harness.backfill(SPRING, ending.signal).catch(() => undefined);
      const open = async () => {
        const [row] = await harness.read(
          `SELECT count(*) FILTER (outcome IS NULL), count(*) FROM sync.windows WHERE user_id IN ('dan', 'eva')`,
        );
        return row!;
      };
      await until(
        'those of the others are read',
        async () => {
          const [left, all] = (await open()) as [number, number];
          return all > 30 && left === 0;
        },
        20_000,
      );
      ending.abort();
      await run;
    }, 60_000);

    test('hold up no event of others', async () => {
      const { harness, service } = await setUp('events');
      const inbox = await harness.app.inbox();
      let at = Date.now() * 1000;
      const announce = (name: string, id: string) =>
        inbox.append(
          String(at++),
          JSON.stringify({
            event_type: 'update',
            data_type: 'daily_spo2',
            object_id: id,
            event_time: '2024-06-13T08:00:00+00:00',
            user_id: `service-${name}`,
          }),
        );
      await Promise.all(LIMITED.flatMap(name => Array.from({ length: EVENTS_EACH }, (_, i) => announce(name, `${name}-${i}`))));
      const { stop, filling } = await startFetching(await harness.app.pipeline());
      onTestFinished(stop);
      await until(
        'all of the thirty are asked to wait',
        () => LIMITED.every(name => service.asked.some(({ token, path }) => token === name && path.includes('daily_spo2'))),
        20_000,
      );
      for (const name of QUICK) {
        await announce(name, `${name}-1`);
        filling.add(String(at - 1));
      }
      const outcomes = () => harness.read(`SELECT outcome FROM sync.events ORDER BY received_at`);
      await until('those of the others have their outcome', async () => (await outcomes()).length === 2, 20_000);
      // Whether each was worked on once does not matter here.
      expect(await harness.read('SELECT user_id FROM daily_spo2 ORDER BY 1')).toEqual(QUICK.map(name => [name]));
    }, 60_000);
  },
);
