import { onTestFinished, test } from 'vitest';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { type EraseMoment, type EraseSetting, killErasing, openEraseSetting } from '../support/erase-kill-rounds.ts';
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
