import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { App } from '../../src/app/app.ts';
import { readSettings } from '../../src/base/config.ts';
import { createLog, silentLog } from '../../src/base/log.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
import { tempFolder } from '../support/temp-folder.ts';

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

test('told nothing else, an owner lets five seconds pass before a second look or attempt, and fifteen where nobody can be reached', async () => {
  const settings = readSettings({ RINGNECK_DATA: join(tempFolder(), 'data'), RINGNECK_SERVICE_URL: 'http://127.0.0.1:9' });
  const app = await App.open({ settings, log: silentLog, isAlone: true });
  onTestFinished(() => app.close());
  expect(await app.pipeline()).toMatchObject({ secondLookMs: 5_000, retryDelayMs: 5_000, unreachedMs: 15_000 });
});
