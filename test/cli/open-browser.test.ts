import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openBrowser } from '../../src/cli/terminal/open-browser.ts';
import { hasChromium, openChromium } from '../support/chromium.ts';
import { startFaultService } from '../support/fault-service.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();

/** Opens an address in a browser of ours, and gives what that was started with and in. */
async function open(url: string, data: string): Promise<string> {
  // A shell reads its script as it goes on: that of the test before may not be through with its own.
  const [browser, seen] = [`${data}.sh`, join(data, 'seen')];
  writeFileSync(browser, `#!/bin/sh\n{ echo "$@"; env; } > ${seen}.new\nmv ${seen}.new ${seen}\n`);
  chmodSync(browser, 0o700);
  const env = {
    RINGNECK_SECRET_KEY: 'a-key-of-ours-0123',
    RINGNECK_CLIENT_SECRET: 'a-secret-of-ours',
    DISPLAY: ':1',
    BROWSER: browser,
    XDG_DATA_DIRS: folder,
    XDG_CURRENT_DESKTOP: '',
    WSL_DISTRO_NAME: '',
  };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  (await openBrowser(url, data)).unref();
  await until('it is open', () => existsSync(seen));
  return readFileSync(seen, 'utf8');
}

test.skipIf(process.platform !== 'linux')('the browser has none of our settings, of which some are secrets', async () => {
  const text = await open('http://127.0.0.1:9/?of=ada', join(folder, 'settings'));
  expect(text.split('\n')).toContain('DISPLAY=:1');
  expect(text).not.toMatch(/RINGNECK_|of-ours/);
  expect(process.env.RINGNECK_SECRET_KEY).toBe('a-key-of-ours-0123');
});

test.skipIf(process.platform !== 'linux')('no program is started with the address: others could use it first', async () => {
  const data = join(folder, 'arguments');
  const page = join(data, 'open.html');
  const text = await open('http://127.0.0.1:9/enter#the-code', data);
  expect(text.split('\n')[0]).toBe(pathToFileURL(page).href);
  expect(text).not.toContain('the-code');
  expect(statSync(page).mode & 0o777).toBe(0o600);
});

test.skipIf(process.platform !== 'linux' || !hasChromium)('the page leads a browser to the address, without a referrer', async () => {
  const referrers: unknown[] = [];
  const service = await startFaultService({
    '/enter': ({ headers }) => {
      referrers.push(headers.referer);
      return { json: {} };
    },
  });
  onTestFinished(() => service.close());
  const data = join(folder, 'leads');
  const url = `${service.url}/enter?a=1&b="2"#the-code`;
  await open(url, data);
  const page = await (await openChromium()).newPage();
  await page.goto(pathToFileURL(join(data, 'open.html')).href);
  await page.waitForURL(new URL(url).href);
  expect(referrers).toEqual([undefined]);
});
