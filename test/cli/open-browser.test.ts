import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openBrowser } from '../../src/cli/terminal/open-browser.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();

test.skipIf(process.platform !== 'linux')('the browser has none of our settings, of which some are secrets', async () => {
  const [browser, seen] = [join(folder, 'browser.sh'), join(folder, 'seen')];
  writeFileSync(browser, `#!/bin/sh\n{ echo "$@"; env; } > ${seen}.new\nmv ${seen}.new ${seen}\n`);
  chmodSync(browser, 0o700);
  const env = {
    RINGNECK_SECRET_KEY: 'a-key-of-ours-0123',
    RINGNECK_CLIENT_SECRET: 'a-secret-of-ours',
    DISPLAY: ':1',
    BROWSER: browser,
    XDG_DATA_DIRS: folder,
    XDG_CURRENT_DESKTOP: '',
  };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  (await openBrowser('http://127.0.0.1:9/?of=ada')).unref();
  await until('it is open', () => existsSync(seen));
  const text = readFileSync(seen, 'utf8');
  expect(text.split('\n')).toEqual(expect.arrayContaining(['http://127.0.0.1:9/?of=ada', 'DISPLAY=:1']));
  expect(text).not.toMatch(/RINGNECK_|of-ours/);
  expect(process.env.RINGNECK_SECRET_KEY).toBe('a-key-of-ours-0123');
});
