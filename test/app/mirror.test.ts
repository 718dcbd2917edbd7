import { expect, onTestFinished, test } from 'vitest';
import type { App } from '../../src/app/app.ts';
import { serveMirror } from '../../src/app/mirror.ts';
import { silentLog } from '../../src/base/log.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { newPath, openWarehouse } from '../support/warehouse.ts';

const folder = tempFolder();

test('a mirror has no rate limits', async () => {
  const warehouse = await openWarehouse(newPath(folder));
  const mirrorTokens = { findAccount: () => 'ada' };
  const mirror = await serveMirror({ warehouse, mirrorTokens, log: silentLog, now: Date.now } as unknown as App, {
    host: '127.0.0.1',
    port: 0,
  });
  onTestFinished(async () => {
    await mirror.close();
    await warehouse.close();
  });
  const ask = async () => {
    const answer = await fetch(`${mirror.url}/v2/usercollection/personal_info`, { headers: { authorization: 'Bearer m' } });
    await answer.arrayBuffer();
    return answer.status;
  };
  const statuses = new Set<number>();
  // One more than a service takes of a token in five minutes.
  for (let asked = 0; asked < 5_001; asked += 3) for (const status of await Promise.all([ask(), ask(), ask()])) statuses.add(status);
  expect([...statuses]).toEqual([200]);
});
