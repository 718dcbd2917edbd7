import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { followEvents } from '../../src/cli/follow-events.ts';
import { createLog } from '../../src/log.ts';
import { startFaultService } from '../support/fault-service.ts';
import { openHouse } from '../support/house.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

test('after the embedded queue was lost, up reads the recent days again at once, once, also where another command met the loss', async () => {
  const folder = tempFolder();
  const service = await startFaultService({ '/v2/usercollection/personal_info': { json: { id: 'x' } } });
  onTestFinished(() => service.close());
  const lines: string[] = [];
  const log = createLog({ level: 'warn', pretty: false, stream: { write: line => void lines.push(line) } });
  const said = () => lines.map(line => JSON.parse(line) as { msg: string }).filter(({ msg }) => msg.includes('queue'));
  const open = async () => {
    const house = await openHouse(folder, service.url, { log, now: () => Date.parse('2025-03-10T12:00:00Z') });
    return { house, pipeline: await house.owner.pipeline() };
  };
  const nightlies = `SELECT (request->>'from'), (request->>'to') FROM sync.runs WHERE kind = 'nightly'`;

  const first = await open();
  await first.house.add([{ name: 'ada', token: 'token-ada' }]);
  await first.house.close();
  rmSync(join(folder, 'queue/database/PG_VERSION'));

  const command = await open();
  expect(command.pipeline.queues.startedEmpty).toBe(true);
  await command.house.close();
  expect(said()).toMatchObject([{ msg: expect.stringContaining('accepted events that were not worked off may be lost') }]);

  const up = await open();
  expect(await up.house.read(nightlies)).toEqual([]);
  const schedules = await (await followEvents(up.house.owner)).start();
  const lost = join(folder, 'queue/database.lost');
  await until('the run is in the ledger', () => !existsSync(lost));
  expect(await up.house.read(nightlies)).toEqual([['2025-02-26', '2025-03-11']]);
  expect(said().slice(1)).toMatchObject([{ days: 14, msg: expect.stringContaining('the last days of everything are read again') }]);
  schedules.close();
  await up.house.close();

  const later = await open();
  expect(later.pipeline.queues.startedEmpty).toBe(false);
});
