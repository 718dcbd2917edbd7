import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readiness } from '../../src/app/up.ts';
import { readSettings } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import { openHarness } from '../support/harness.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const WEBHOOKS = {
  RINGNECK_CALLBACK_URL: 'https://here.example/webhook',
  RINGNECK_CLIENT_ID: 'id',
  RINGNECK_CLIENT_SECRET: 'secret',
  RINGNECK_VERIFICATION_TOKEN: 'token',
};

test('who cannot accept events is not ready, although the warehouse takes all', async () => {
  const { webhooks } = readSettings(WEBHOOKS);
  const { app } = await openHarness(join(folder, 'a'), 'http://127.0.0.1:1', { settings: { webhooks } });
  await readiness(() => app, silentLog)();
  const inbox = join(folder, 'a', 'inbox');
  rmSync(inbox, { recursive: true });
  writeFileSync(inbox, '');
  await expect(readiness(() => app, silentLog)()).rejects.toThrow('inbox');
  rmSync(inbox);
  await readiness(() => app, silentLog)();
});
