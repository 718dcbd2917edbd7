import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Journal } from '../../../src/base/journal.ts';
import { spo2 } from '../../service/documents.ts';
import { EVENTS_NOW, openEventHarness } from '../../support/event-harness.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';
import { isWhole } from '../../support/whole.ts';

const folder = tempFolder();
const WAITING = isWhole ? 20_000 : 6_000;
const IDS = Array.from({ length: 28 }, (_, i) => `spo2-${i + 1}`);

/** What an earlier process has accepted: events of ada's documents, the oldest first. */
async function fillInbox(data: string): Promise<void> {
  const inbox = new Journal(join(data, 'inbox'));
  const first = (EVENTS_NOW - 3_600_000) * 1000;
  const event = { event_type: 'update', data_type: 'daily_spo2', event_time: '2025-03-10T14:00:00+00:00', user_id: 'service-ada' };
  await Promise.all(
    Array.from({ length: WAITING }, (_, i) =>
      inbox.append(String(first + i), JSON.stringify({ ...event, object_id: IDS[i % IDS.length] })),
    ),
  );
  await inbox.close();
}

test('thousands of events that wait: the queue holds a few, they are settled from the first on, and the end comes soon', async () => {
  const data = join(folder, randomUUID());
  await fillInbox(data);
  for (let start = 0; start < 2; start++) {
    const harness = await openEventHarness(folder, { data, later: true });
    let closing: Promise<void> | undefined;
    const close = () => {
      closing ??= harness.close();
      return closing;
    };
    onTestFinished(close);
    await harness.person('ada', { daily_spo2: IDS.map((id, i) => spo2(`2025-02-${String(i + 1).padStart(2, '0')}`, id)) });
    const newcomer = await harness.person('eva', { daily_spo2: [spo2('2025-02-01', 'of-eva')] });
    const before = harness.pipeline.inbox.size;
    const [oldest] = harness.pipeline.inbox.keys();
    await harness.start();
    let most = 0;
    await until(
      'some are settled',
      async () => {
        most = Math.max(most, await harness.queue.getJobCountByTypes('waiting', 'active', 'delayed'));
        // The oldest of a second start may have been under way when the first one ended: its job comes back a little later.
        return harness.lines.length >= 300 && !harness.pipeline.inbox.has(oldest!);
      },
      60_000,
    );
    expect(most).toBeLessThan(100);
    expect(harness.pipeline.inbox.size).toBeGreaterThan(0);
    expect(before - harness.pipeline.inbox.size).toBeGreaterThanOrEqual(300);
    await newcomer.announce({ object_id: 'of-eva' });
    await until('what comes now of others is settled', () => harness.lines.some(({ user_id }) => user_id === 'eva'), 30_000);
    const ended = Date.now();
    await close();
    expect(Date.now() - ended).toBeLessThan(8_000);
  }
}, 180_000);
