import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { call } from '../../src/app/call.ts';
import { getSource } from '../../src/app/find-source.ts';
import { readSettings } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import { freePort, hasRedis, shareRedis, startRedis } from '../queue/redis-server.ts';
import { SUBSCRIPTIONS } from '../support/declared.ts';
import { type Running, ringneck, startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import type { SandboxProcess } from '../support/sandbox-process.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { rowsOf, withDuckDB } from '../support/warehouse.ts';
import { isWhole } from '../support/whole.ts';

const folder = tempFolder();
const newQueue = shareRedis();
const RANGE = ['--from', '2025-03-01', '--to', '2025-03-10'];
const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** The service and the pipeline as two terminals have them. */
async function openTerminals(name: string, options: { service?: string[]; env?: Record<string, string> } = {}) {
  const own = join(folder, name);
  const args = ['service', '--people', '2', ...RANGE, '--port', '0', '--json', '--allow-callback', '127.0.0.0/8'];
  const service = startRingneck([...args, '--delivery-delay', '0', ...(options.service ?? [])], {
    env: { RINGNECK_DATA: join(own, 'service'), RINGNECK_LOG_LEVEL: 'warn', ...newQueue() },
  });
  closing.push(() => stop(service));
  const sandbox = JSON.parse(await service.line()) as SandboxProcess;
  const port = await freePort();
  const env = {
    RINGNECK_DATA: join(own, 'data'),
    RINGNECK_SERVICE_URL: sandbox.url,
    RINGNECK_PORT: String(port),
    RINGNECK_CALLBACK_URL: `http://127.0.0.1:${port}/webhook`,
    RINGNECK_CLIENT_ID: sandbox.client.id,
    RINGNECK_CLIENT_SECRET: sandbox.client.secret,
    RINGNECK_VERIFICATION_TOKEN: 'a-word-of-ours',
    RINGNECK_LOG_LEVEL: 'info',
    ...options.env,
  };
  const settings = readSettings(env);
  const cli = async (...command: string[]) => {
    const ended = await runHere(command, { env });
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    return JSON.parse(ended.stdout);
  };
  return {
    env,
    sandbox,
    cli,
    up: async () => {
      const up = startRingneck(['up'], { env });
      closing.push(() => stop(up));
      await up.said('"msg":"up"');
      return up;
    },
    control: async (path: string, body: object) => {
      const answer = await fetch(`${sandbox.control.url}/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${sandbox.control.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      expect(answer.status).toBe(200);
      return answer.json();
    },
    status: () => call({ settings, log: silentLog }, 'status', {}),
    /** What the owner's snapshot holds, as `ringneck sql` reads it. */
    ask: async (query: string) => {
      const { path } = await getSource(settings);
      return withDuckDB(path, connection => rowsOf(connection, query), { access_mode: 'READ_ONLY' });
    },
  };
}

async function stop(running: Running) {
  running.kill('SIGTERM');
  return running.end();
}

/** Asks until the answer is this one. */
async function until<T>(ask: () => Promise<T>, wanted: T, ms = 60_000): Promise<void> {
  const end = Date.now() + ms;
  for (;;) {
    const answer = await ask();
    if (JSON.stringify(answer) === JSON.stringify(wanted)) return;
    if (Date.now() > end) expect(answer).toEqual(wanted);
    await sleep(300);
  }
}

async function addPeople({ sandbox, env }: { sandbox: SandboxProcess; env: Record<string, string> }) {
  const { people } = sandbox;
  const added = await Promise.all(people.map(({ name, token }) => ringneck(['account', 'add', name], { env, input: token })));
  expect(added.map(({ code }) => code)).toEqual([0, 0]);
}

let redis: Awaited<ReturnType<typeof startRedis>> | undefined;
beforeAll(async () => {
  if (!hasRedis || !isWhole) return;
  redis = await startRedis();
  return () => redis?.remove();
});

// What is another with Redis is in redis-mishaps.test.ts.
test.each(['embedded', ...(hasRedis && isWhole ? ['redis'] : [])])(
  'a nap travels from a ring into the table and out of it again, with an interruption between (%s)',
  async kind => {
    const env: Record<string, string> = kind === 'redis' ? { RINGNECK_QUEUE_URL: redis!.url } : {};
    // A retry comes a second after its failure instead of after minutes.
    const harness = await openTerminals(kind, { env, service: ['--time-scale', '60'] });
    const { cli, control, ask, status } = harness;
    let up = await harness.up();
    await addPeople(harness);
    await cli('backfill', ...RANGE, '--json');
    await until(async () => (await status()).webhooks?.active, SUBSCRIPTIONS);
    const rings = await cli('subscriptions', 'list', '--json');
    expect(rings).toHaveLength(SUBSCRIPTIONS);
    expect(rings[0]).toMatchObject({ state: 'active', at_service: true, callback_url: harness.env.RINGNECK_CALLBACK_URL });

    const [ada, ben] = harness.sandbox.people;
    await control('clock', { advance: 9 * 3_600 });
    const first = (await control('nap', { person: ada!.name, minutes: 30 })) as { id: string; day: string };
    expect(first.day).toBe('2025-03-11');
    const countSleep = (id: string) => ask(`SELECT count(*) AS n FROM sleep WHERE id = '${id}'`);
    await until(() => countSleep(first.id), [{ n: 1 }]);
    const nap = `SELECT user_id, type, time_in_bed, day FROM sleep WHERE id = '${first.id}'`;
    expect(await cli('sql', nap, '--format', 'json')).toEqual([
      { user_id: ada!.name, type: 'sleep', time_in_bed: 1_800, day: '2025-03-11' },
    ]);

    // While nobody listens a nap is taken and the first one is deleted: both are told again until we are back.
    expect((await stop(up)).code).toBe(0);
    const second = (await control('nap', { person: ben!.name, minutes: 45 })) as { id: string; day: string };
    await control('edit', { person: ada!.name, kind: 'delete-sleep', day: first.day, id: first.id });
    await sleep(500);
    up = await harness.up();
    await until(() => countSleep(second.id), [{ n: 1 }]);
    await until(() => countSleep(first.id), [{ n: 0 }]);

    await until(
      () => ask(`SELECT DISTINCT outcome FROM sync.events WHERE object_id = '${first.id}' ORDER BY 1`),
      [{ outcome: 'removed' }, { outcome: 'stored' }],
    );
    const lags = await ask(
      `SELECT count(*) AS n FROM sync.events WHERE received_at IS NULL OR committed_at < received_at OR event_time IS NULL`,
    );
    expect(lags).toEqual([{ n: 0 }]);

    expect(await cli('subscriptions', 'remove', '--json')).toMatchObject({ removed: SUBSCRIPTIONS, failed: [] });
    expect((await status()).webhooks).toMatchObject({ subscriptions: 'removed', active: 0 });
    for (const secret of [harness.sandbox.client.secret, ada!.token, 'a-word-of-ours']) expect(up.stderr).not.toContain(secret);
    expect((await stop(up)).code).toBe(0);
  },
);
