// The picture that the README opens with: node scripts/screenshot.mjs [DATA-FOLDER] [PATH]. Needs a build, Chromium, and data as
// `ringneck demo --keep` leaves it; says whether the picture has changed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const MOST_BYTES = 200_000;
const root = fileURLToPath(new URL('..', import.meta.url));
const out = join(root, 'docs/console.png');
const [data = join(root, 'data-demo'), path = '/people/ada'] = process.argv.slice(2);

const served = spawn(process.execPath, [join(root, 'dist/src/cli/main.js'), 'console', '--no-open', '--role', 'reader'], {
  env: { ...process.env, RINGNECK_DATA: data, RINGNECK_CONSOLE_PORT: '0' },
  stdio: ['ignore', 'pipe', 'inherit'],
});
const executablePath = ['chromium', 'chromium-browser', 'google-chrome'].map(name => `/usr/bin/${name}`).find(existsSync);
if (!executablePath) throw new Error('no Chromium in /usr/bin: the picture is made with it');
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  const link = await Promise.race([
    once(served.stdout, 'data').then(([text]) => String(text).trim()),
    once(served, 'exit').then(() => Promise.reject(new Error(`no console over ${data}`))),
  ]);
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, colorScheme: 'light' });
  await page.goto(link);
  await page.waitForURL(url => !url.pathname.endsWith('/enter'));
  await page.goto(link.replace(/\/enter#.*/, path));
  await page.waitForLoadState('networkidle');
  const picture = await page.screenshot();
  if (picture.length > MOST_BYTES) throw new Error(`the picture has ${picture.length} bytes, more than ${MOST_BYTES}`);
  const isSame = existsSync(out) && picture.equals(readFileSync(out));
  if (!isSame) writeFileSync(out, picture);
  process.stdout.write(`${out}: ${isSame ? 'as it was' : 'new'}, ${picture.length} bytes\n`);
} finally {
  await browser.close();
  served.kill('SIGINT');
}
