import { cpSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { type EraseMoment, type EraseSetting, killErasing, openEraseSetting } from '../support/erase-kill-rounds.ts';
import { ringneck } from '../support/ringneck.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
let setting: Promise<EraseSetting> | undefined;

// One before the new file, one after it; test/campaign has all of them.
test.each<EraseMoment>(['the events are in the inbox alone', 'the new file is in its place'])(
  'killed when %s, it is finished when the folder is opened next',
  async moment => {
    setting ??= openEraseSetting(folder);
    await killErasing(await setting, moment);
  },
);

test.runIf(hasRedis)('killed with its queues in a Redis, the next start leaves nothing of the person there', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.remove());
  setting ??= openEraseSetting(folder);
  await killErasing(await setting, 'it is noted as begun', redis.url);
  await killErasing(await setting, 'the new file is in its place', redis.url);
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
  const refused = await ringneck(['account', 'list'], { env });
  expect(refused.code).toBe(75);
  expect(refused.stderr).toContain('cannot be finished (the next command tries again): Redis at');
  expect(existsSync(join(data, 'erasing.json'))).toBe(true);
  await redis.start();
  const finished = await ringneck(['account', 'list', '--json'], { env });
  expect(finished.code, finished.stderr).toBe(0);
  expect(finished.stdout).not.toContain('"ada"');
  expect(existsSync(join(data, 'erasing.json'))).toBe(false);
});
