import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { DataFolder } from '../../../src/app/data-folder.ts';
import { findPaused } from '../../../src/app/erase/erase.ts';
import { writeMarker } from '../../../src/app/erase/marker.ts';
import { whenErased } from '../../../src/app/erase/when-erased.ts';
import { readSettings } from '../../../src/base/config.ts';
import { RingneckError, TryLaterError } from '../../../src/base/errors.ts';
import { createLog } from '../../../src/base/log.ts';
import { MemoryQueues } from '../../../src/queue/memory.ts';
import { openHarness } from '../../support/harness.ts';
import { holdInPlace, letGo } from '../../support/hold-in-place.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';

const folder = tempFolder();

test('while an erasing waits for who reads the lake, events of others are accepted', () => {
  const data = join(folder, 'of-a-lake');
  mkdirSync(data);
  const marker = { format: 1, name: 'ada', isOfAnother: false, removed: {}, queue: 'embedded' } as const;
  writeMarker(data, { ...marker, serviceUserIds: ['s-1'], samePerson: [] });
  const settings = readSettings({ RINGNECK_DATA: data, RINGNECK_WAREHOUSE: 'ducklake:postgres://ring@/ring?data=/srv/ring' });
  const error = new RingneckError('not finished', 75, { cause: new TryLaterError('somebody reads it') });
  expect(findPaused({ settings, acceptsWhileErasing: true }, error)).toEqual({
    serviceUserIds: ['s-1'],
    waitsFor: 'the lake',
    reason: 'not finished',
  });
});

test.each(['snapshot.duckdb', 'mirror-tokens.json'])(
  'an erasing that cannot take %s away is not done: up waits for it, answers nobody, and finishes it once it can',
  async name => {
    const data = join(folder, name);
    const harness = await openHarness(data, 'http://127.0.0.1:1');
    await harness.keep([
      { name: 'ada', token: 'a' },
      { name: 'ben', token: 'b' },
    ]);
    await harness.commands.mirrorToken({ name: 'ada' });
    await harness.commands.snapshot({});
    await harness.close();
    const { settings } = harness.app;
    const lines: string[] = [];
    const log = createLog({ level: 'warn', pretty: false, stream: { write: line => void lines.push(line) } });
    const kept = await DataFolder.open({ settings, log, openQueues: () => new MemoryQueues(), acceptsWhileErasing: true });
    onTestFinished(() => kept.end().then(() => kept.close()));
    const wait = { ms: 1, said: false };
    await kept.during(async app => (app.erasing ? whenErased(app, wait) : () => undefined));
    holdInPlace(join(data, name));
    onTestFinished(letGo);
    const why = 'EROFS: read-only file system';
    await expect(kept.commands.eraseAccount({ name: 'ada' })).rejects.toThrow(why);
    await expect(kept.commands.listAccounts({})).rejects.toThrow(`an account is being erased from ${data}; try again in a moment`);
    expect(existsSync(join(data, 'erasing.json'))).toBe(true);
    expect(lines.join('')).toContain(
      'each try closes the folder for a while: events are answered 503 then, and the service sends them again',
    );
    letGo();
    const listed = async () => (await kept.commands.listAccounts({})).map(({ user_id }) => user_id);
    await until('it is finished', async () => listed().then(Boolean, () => false), 20_000);
    expect([await listed(), existsSync(join(data, 'erasing.json'))]).toEqual([['ben'], false]);
    expect(kept.app.secrets.names()).toEqual(['ben']);
  },
);
