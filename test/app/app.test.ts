import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { App } from '../../src/app/app.ts';
import { readSettings } from '../../src/base/config.ts';
import { createLog, silentLog } from '../../src/base/log.ts';
import { MemoryQueues } from '../../src/queue/memory.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

test('when DuckDB can do no more in this process, the process ends with 1 and says so', async () => {
  const lines: string[] = [];
  const log = createLog({ level: 'info', pretty: false, stream: { write: line => void lines.push(line) } });
  const open = vi.spyOn(Warehouse, 'open');
  const exit = vi.spyOn(process, 'exit').mockImplementation((() => undefined) as never);
  onTestFinished(() => void vi.restoreAllMocks());
  const app = await App.open({ settings: readSettings({ RINGNECK_DATA: join(tempFolder(), 'data') }), log });
  onTestFinished(() => app.close());
  open.mock.calls[0]![0].onFatal!(new Error('FATAL Error: database has been invalidated'));
  expect(exit).toHaveBeenCalledExactlyOnceWith(1);
  expect(lines.map(line => JSON.parse(line))).toMatchObject([
    { level: 60, reason: 'FATAL Error: database has been invalidated', msg: 'the warehouse failed' },
  ]);
});

/** What is asked of the service, until it is answered. */
function ask(): { answered: Promise<void>; answer(): void } {
  let answer: () => void = () => undefined;
  const answered = new Promise<void>(resolve => {
    answer = resolve;
  });
  return { answered, answer: () => answer() };
}

const WAITED_FOR = 'which is waited for';

test('a process that ends by itself has the answers first that come once, and begins nothing more', async () => {
  const asked = ask();
  const write = (line: string) => void (line.includes(WAITED_FOR) && asked.answer());
  const log = createLog({ level: 'warn', pretty: false, stream: { write } });
  const open = vi.spyOn(Warehouse, 'open');
  const order: unknown[] = [];
  const exit = vi.spyOn(process, 'exit').mockImplementation(((code: unknown) => void order.push(code)) as never);
  onTestFinished(() => void vi.restoreAllMocks());
  const app = await App.open({ settings: readSettings({ RINGNECK_DATA: join(tempFolder(), 'data') }), log });
  onTestFinished(() => app.close());
  void app.inHand.add(asked.answered.then(() => order.push('answered')));
  open.mock.calls[0]![0].onFatal!(new Error('FATAL Error: database has been invalidated'));
  expect([exit.mock.calls.length, app.ending.aborted, app.inHand.isEnding]).toEqual([0, true, true]);
  await until('the process has ended', () => exit.mock.calls.length > 0);
  expect(order).toEqual(['answered', 1]);
});

test('what fails as the folder is given back keeps nobody from waiting for the answers that come once', async () => {
  const asked = ask();
  const write = (line: string) => void (line.includes(WAITED_FOR) && asked.answer());
  const log = createLog({ level: 'warn', pretty: false, stream: { write } });
  const close = async () => {
    throw new Error('the queue is broken');
  };
  const openQueues = () => Object.assign(new MemoryQueues(), { close });
  const settings = readSettings({ RINGNECK_DATA: join(tempFolder(), 'data'), RINGNECK_SERVICE_URL: 'http://127.0.0.1:9' });
  const app = await App.open({ settings, log, openQueues });
  await app.pipeline();
  const order: string[] = [];
  void app.inHand.add(asked.answered.then(() => order.push('answered')));
  const closing = app.close().catch(error => order.push(error.message));
  await closing;
  expect(order).toEqual(['answered', 'the queue is broken']);
});

test('told nothing else, an owner lets five seconds pass before a second look or attempt, and fifteen where nobody can be reached', async () => {
  const settings = readSettings({ RINGNECK_DATA: join(tempFolder(), 'data'), RINGNECK_SERVICE_URL: 'http://127.0.0.1:9' });
  const app = await App.open({ settings, log: silentLog, isAlone: true });
  onTestFinished(() => app.close());
  expect(await app.pipeline()).toMatchObject({ secondLookMs: 5_000, retryDelayMs: 5_000, unreachedMs: 15_000 });
});
