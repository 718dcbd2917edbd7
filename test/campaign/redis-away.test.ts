import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { hasRedis, startRedis } from '../queue/redis-server.ts';
import { KILLED_COMMAND, openKillSetting } from '../support/kill-rounds.ts';
import { below, randomFrom } from '../support/random-documents.ts';
import { startRingneck } from '../support/ringneck.ts';
import { inspectFile } from '../support/table-hash.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { chosen, rounds, seed } from './choice.ts';

const folder = tempFolder();

test.skipIf(!hasRedis)(`Redis alone is killed in the middle of a backfill and comes back: the run goes on, ${chosen}`, async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.remove());
  const { template, service, settings, hashes, requests, close } = await openKillSetting(folder);
  onTestFinished(close);
  const random = randomFrom(seed);
  for (let round = 1; round <= Math.ceil(rounds / 4); round++) {
    const data = join(folder, `away-${round}`);
    cpSync(template, data, { recursive: true });
    const at = service.asked.length + 1 + below(random, Math.floor(requests * 0.9));
    const child = startRingneck(KILLED_COMMAND, { env: settings(data, redis.url) });
    while (service.asked.length < at && child.process.exitCode === null) await sleep(1);
    await redis.kill();
    await sleep(below(random, 500));
    await redis.start();
    const ended = await child.end();
    expect(ended, `round ${round}, seed ${seed}: ${ended.stderr}`).toMatchObject({ code: 0 });
    expect(await inspectFile(data)).toMatchObject({ hashes, broken: [] });
  }
});
