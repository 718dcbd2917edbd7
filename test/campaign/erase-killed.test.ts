import { onTestFinished, test } from 'vitest';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { eraseMoments, killErasing, openEraseSetting } from '../support/erase-kill-rounds.ts';
import { tempFolder } from '../support/temp-folder.ts';

test('kill -9 in the middle of an erasing, at every moment, no rate limits', async () => {
  const setting = await openEraseSetting(tempFolder());
  for (const moment of eraseMoments) await killErasing(setting, moment);
  if (!hasRedis) return;
  const redis = await startRedis();
  onTestFinished(() => redis.remove());
  // To put its events there the inbox has been opened: that moment would come before anything was begun.
  for (const moment of eraseMoments.slice(1)) await killErasing(setting, moment, redis.url);
});
