import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { freePort, hasRedis, startRedis } from '../../queue/redis-server.ts';
import { signed } from '../../receiver/signed.ts';
import { type EraseMoment, type EraseSetting, killErasing, openEraseSetting } from '../../support/erase-kill-rounds.ts';
import { ringneck, startRingneck } from '../../support/ringneck.ts';
import { runHere } from '../../support/run-here.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';

const folder = tempFolder();
let setting: Promise<EraseSetting> | undefined;

// One after the new file; with a Redis one before it. test/campaign has all of both.
test.each<EraseMoment>(['the new file is in its place'])('killed when %s, it is finished when the folder is opened next', async moment => {
  setting ??= openEraseSetting(folder);
  await killErasing(await setting, moment);
});

test('of two processes that find an interrupted erasing one finishes it, and the other finds it done', async () => {
  setting ??= openEraseSetting(folder);
  const { original, serviceUrl } = await setting;
  const data = join(folder, 'two');
  cpSync(original, data, { recursive: true });
  const begun = { format: 1, name: 'ada', serviceUserIds: null, samePerson: [], removed: {}, queue: 'embedded' };
  writeFileSync(join(data, 'erasing.json'), JSON.stringify(begun));
  const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: serviceUrl };
  const both = await Promise.all([0, 1].map(() => ringneck(['account', 'list', '--json'], { env })));
  for (const { code, stdout, stderr } of both)
    expect([code, stdout.includes('"ada"'), stderr.includes('not searched')], stderr).toEqual([0, false, false]);
  expect(both.filter(({ stderr }) => stderr.includes('which was interrupted, is finished'))).toHaveLength(1);
  expect(['erasing.json', 'finishing.lock'].map(name => existsSync(join(data, name)))).toEqual([false, false]);
});

test.runIf(hasRedis)('killed with its queues in a Redis, the next start leaves nothing of the person there', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.remove());
  setting ??= openEraseSetting(folder);
  await killErasing(await setting, 'it is noted as begun', redis.url);
});

test.runIf(hasRedis)('what cannot be finished while Redis is away is not forgotten: the next command finishes it', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.remove());
  setting ??= openEraseSetting(folder);
  const { original, serviceUrl } = await setting;
  const data = join(folder, 'away');
  cpSync(original, data, { recursive: true });
  const begun = { format: 1, name: 'ada', serviceUserIds: null, samePerson: [], removed: {}, queue: 'redis' };
  writeFileSync(join(data, 'erasing.json'), JSON.stringify(begun));
  const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: serviceUrl, RINGNECK_QUEUE_URL: redis.url };
  await redis.kill();
  const refused = await runHere(['account', 'list'], { env });
  expect(refused.code).toBe(75);
  expect(refused.stderr).toContain('cannot be finished (the next command tries again): Redis at');
  expect(existsSync(join(data, 'erasing.json'))).toBe(true);
  await redis.start();
  const finished = await runHere(['account', 'list', '--json'], { env });
  expect(finished.code, finished.stderr).toBe(0);
  expect(finished.stdout).not.toContain('"ada"');
  expect(existsSync(join(data, 'erasing.json'))).toBe(false);
});

test.runIf(hasRedis)(
  'up whose Redis is away accepts events beside an erasing that was interrupted, but none of that person, and finishes it when Redis answers',
  async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    setting ??= openEraseSetting(folder);
    const { original, serviceUrl, userIds } = await setting;
    const data = join(folder, 'listening');
    cpSync(original, data, { recursive: true });
    const begun = { format: 1, name: 'ada', serviceUserIds: null, samePerson: [], removed: {}, queue: 'redis' };
    writeFileSync(join(data, 'erasing.json'), JSON.stringify(begun));
    await redis.kill();
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/webhook`;
    const env = {
      RINGNECK_DATA: data,
      RINGNECK_SERVICE_URL: serviceUrl,
      RINGNECK_QUEUE_URL: redis.url,
      RINGNECK_PORT: String(port),
      RINGNECK_CALLBACK_URL: url,
      RINGNECK_CLIENT_ID: 'client-7',
      RINGNECK_CLIENT_SECRET: 'a-client-secret',
      RINGNECK_VERIFICATION_TOKEN: 'a-word-of-ours',
    };
    const up = startRingneck(['up', '--mirror', '0'], { env });
    const send = (userId: string, documentId: string) => {
      const event = { event_type: 'update', data_type: 'sleep', object_id: documentId, event_time: '2025-05-31T23:59:30+00:00' };
      const body = JSON.stringify({ ...event, user_id: userId });
      const { timestamp, signature } = signed(body, String(Math.floor(Date.now() / 1000)));
      const headers = { 'x-service-timestamp': timestamp, 'x-service-signature': signature };
      return fetch(url, { method: 'POST', headers, body }).then(({ status }) => status);
    };
    const inbox = () =>
      readdirSync(join(data, 'inbox'))
        .map(name => readFileSync(join(data, 'inbox', name), 'utf8'))
        .join('');
    await up.said('"msg":"up"');
    expect(await send('nobody', 'of-nobody')).toBe(204);
    expect(await send(userIds[0]!, 'of-ada')).toBe(204);
    expect(inbox()).toContain('of-nobody');
    expect(inbox()).not.toContain('of-ada');
    // Nobody reads meanwhile.
    for (const args of [['account', 'list'], ['status'], ['sql', 'SELECT 1'], ['account', 'mirror-token', 'ada']]) {
      expect(await runHere(args, { env })).toMatchObject({ code: 75, stdout: '', stderr: expect.stringContaining('is being erased') });
    }
    expect(up.stderr).not.toContain('the mirror is served');
    expect(up.stderr.match(/which waits for Redis/g)).toHaveLength(1);
    await redis.start();
    await up.said('is finished');
    await up.said('the mirror is served');
    const listed = async () => runHere(['account', 'list', '--json'], { env });
    await until('commands are answered', async () => (await listed()).code === 0);
    expect((JSON.parse((await listed()).stdout) as { user_id: string }[]).map(({ user_id }) => user_id)).toEqual(['adam']);
    expect(existsSync(join(data, 'erasing.json'))).toBe(false);
    expect(await send(userIds[0]!, 'of-ada')).toBe(204);
    const settled = async () =>
      JSON.parse((await runHere(['sql', 'SELECT object_id FROM sync.events', '--format', 'json'], { env })).stdout);
    await until('what was accepted is settled', async () => JSON.stringify(await settled()).includes('of-nobody'));
    expect(JSON.stringify(await settled())).not.toContain('of-ada');
    up.kill('SIGTERM');
    expect((await up.end()).code).toBe(0);
    expect(inbox()).not.toContain(userIds[0]);
  },
);

describe.runIf(hasRedis).each(['away', 'not the one that writes'])('while an erasing waits for a Redis that is %s', what => {
  test('up ends when it is told to, and the erasing is not forgotten', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.remove());
    setting ??= openEraseSetting(folder);
    const { original, serviceUrl } = await setting;
    const data = join(folder, what.replaceAll(' ', '-'));
    cpSync(original, data, { recursive: true });
    const begun = { format: 1, name: 'ada', serviceUserIds: null, samePerson: [], removed: {}, queue: 'redis' };
    writeFileSync(join(data, 'erasing.json'), JSON.stringify(begun));
    const env = { RINGNECK_DATA: data, RINGNECK_SERVICE_URL: serviceUrl, RINGNECK_QUEUE_URL: redis.url, RINGNECK_PORT: '0' };
    const client = new Redis(redis.url);
    await client.call('REPLICAOF', '127.0.0.1', '1');
    client.disconnect();
    if (what === 'away') await redis.kill();
    const up = startRingneck(['up'], { env });
    await up.said('"msg":"up"');
    expect(await runHere(['account', 'list'], { env })).toMatchObject({ code: 75 });
    up.kill('SIGTERM');
    expect((await up.end()).code).toBe(0);
    expect(existsSync(join(data, 'erasing.json'))).toBe(true);
  });
});
