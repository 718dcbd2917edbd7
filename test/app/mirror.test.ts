import { Client } from 'undici';
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
  // One connection, with more requests on their way than answers have come.
  const client = new Client(mirror.url, { pipelining: 100 });
  onTestFinished(async () => {
    await client.close();
    await mirror.close();
    await warehouse.close();
  });
  const ask = async () => {
    const answer = await client.request({
      method: 'GET',
      // Counted by a service as any other, and answered without a question to the warehouse.
      path: '/v2/usercollection/sleep?start_date=never',
      headers: { authorization: 'Bearer m' },
    });
    await answer.body.dump();
    return answer.statusCode;
  };
  // One more than a service takes of a token in five minutes.
  const statuses = await Promise.all(Array.from({ length: 5_001 }, ask));
  expect([...new Set(statuses)]).toEqual([422]);
});
