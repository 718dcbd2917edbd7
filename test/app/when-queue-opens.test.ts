import { expect, test } from 'vitest';
import { whenQueueOpens } from '../../src/app/when-queue-opens.ts';
import { QueueUnavailable } from '../../src/queue/queues.ts';
import { openHarness } from '../support/harness.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

test('an embedded queue that answers too late is opened again, and the work begins', async () => {
  const { app } = await openHarness(folder, 'http://127.0.0.1:9', { queue: 'embedded' });
  const begun: string[] = [];
  const failed: unknown[] = [];
  const begin = async () => {
    begun.push((await app.pipeline()).queues.kind);
    if (begun.length < 3) throw new QueueUnavailable('the queue gives no answer; try again');
    return () => void begun.push('ended');
  };
  const end = await whenQueueOpens(app, begin, error => void failed.push(error));
  await expect.poll(() => begun.length).toBe(3);
  await end();
  expect([begun, failed]).toEqual([['embedded', 'embedded', 'embedded', 'ended'], []]);
});

test('an embedded queue that never answers, or fails otherwise, is told of', async () => {
  const { app } = await openHarness(`${folder}/other`, 'http://127.0.0.1:9');
  const failed: unknown[] = [];
  let times = 0;
  const never = async () => {
    times++;
    throw new QueueUnavailable('the queue gives no answer; try again');
  };
  const end = await whenQueueOpens(app, never, error => void failed.push(String(error)));
  await expect.poll(() => failed).toEqual(['QueueUnavailable: the queue gives no answer; try again']);
  expect(times).toBe(5);
  await end();
  const broken = () => Promise.reject(new Error('a page of it is torn'));
  await expect(whenQueueOpens(app, broken, () => undefined)).rejects.toThrow('a page of it is torn');
});
