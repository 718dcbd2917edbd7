// The picture that the README opens with: npm run screenshot [-- --check] [DATA-FOLDER] [PATH]. Needs a build, Chromium, and data as
// `npm run demo` leaves it. Makes docs/console.png anew where it differs, and scripts/screenshot.txt beside it, the outline of the page.
//
// --check changes nothing, and fails where the page cannot be drawn or is another than the one in the picture. Data end today, and fonts are
// those of the machine: so pixels are not compared one by one, but
// - what is in the picture: its figures in their order, each with its lanes, axes and rows, and whether anything is drawn in it;
// - the size of the picture, and how much of it is paper, card and coloured marks: without its styles a page has other shares.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';

const MOST_BYTES = 200_000;
/** By how much the shares may differ: of paper and card in all; of coloured marks by this factor. */
const SHARE = 0.1;
const FACTOR = 4;
/** How many figures are in the picture, the last ones in part. */
const FIGURES = 5;
const root = fileURLToPath(new URL('..', import.meta.url));
const out = join(root, 'docs/console.png');
const outlineFile = join(root, 'scripts/screenshot.txt');
const { values, positionals } = parseArgs({ options: { check: { type: 'boolean' } }, allowPositionals: true });
const [data = join(root, 'data-demo'), path = '/people/ada'] = positionals;

/** In the page: what its first figures are made of; of their words those that no data bring, which begin with a capital and are no month. */
function outline(count) {
  const text = node => (node?.textContent ?? '').trim();
  const isDrawn = node => {
    const { width, height } = node.getBoundingClientRect();
    return width + height > 0;
  };
  return [...document.querySelectorAll('figure')].slice(0, count).flatMap(figure => {
    const words = [...figure.querySelectorAll('svg text, th')].map(text).filter(word => /^[A-Z](?:[A-Z]+|\D{3,})$/.test(word));
    const marks = [...figure.querySelectorAll('svg :is(path, rect, circle, line), canvas')].filter(isDrawn);
    return [`${text(figure.querySelector('h2'))}: ${marks.length ? 'drawn' : 'nothing drawn'}`, ...words.map(word => `  ${word}`)];
  });
}

/** In a page: size of a picture, and how much of it is paper, card and coloured. */
async function sharesOf(base64) {
  const picture = new Image();
  picture.src = `data:image/png;base64,${base64}`;
  await picture.decode();
  const { width, height } = picture;
  const canvas = new OffscreenCanvas(width, height).getContext('2d');
  canvas.drawImage(picture, 0, 0);
  const { data: pixels } = canvas.getImageData(0, 0, width, height);
  const counts = { paper: 0, card: 0, coloured: 0 };
  for (let at = 0; at < pixels.length; at += 4) {
    const [red, green, blue] = pixels.subarray(at, at + 3);
    if (red > 252 && blue > 252) counts.card++;
    else if (red > 243 && blue > 238 && red > blue) counts.paper++;
    else if (Math.max(red, green, blue) - Math.min(red, green, blue) > 50) counts.coloured++;
  }
  const [paper, card, coloured] = Object.values(counts).map(count => count / (width * height));
  return { size: `${width} × ${height}`, paper, card, coloured };
}

/** What is another than in the picture that is committed, a line each. */
async function differencesOf(browser, picture, lines) {
  const known = readFileSync(outlineFile, 'utf8').trimEnd().split('\n');
  const page = await browser.newPage();
  const [was, is] = [await page.evaluate(sharesOf, readFileSync(out, 'base64')), await page.evaluate(sharesOf, picture.toString('base64'))];
  const percent = share => `${(share * 100).toFixed(1)} %`;
  const isFar = (before, now) => now < before / FACTOR || now > before * FACTOR;
  const gone = known.filter(line => !lines.includes(line)).map(line => `- ${line}`);
  const come = lines.filter(line => !known.includes(line)).map(line => `+ ${line}`);
  const isReordered = !gone.length && !come.length && known.join('\n') !== lines.join('\n');
  return [
    ...gone,
    ...come,
    ...(isReordered ? [`the same parts, in another order: ${lines.map(line => line.trim()).join(', ')}`] : []),
    ...(was.size === is.size ? [] : [`the picture is ${is.size}, and was ${was.size}`]),
    ...['paper', 'card']
      .filter(kind => Math.abs(is[kind] - was[kind]) > SHARE)
      .map(kind => `${percent(is[kind])} of it is ${kind}, and was ${percent(was[kind])}`),
    ...(isFar(was.coloured, is.coloured) ? [`${percent(is.coloured)} of it is coloured, and was ${percent(was.coloured)}`] : []),
  ];
}

/** The page as it is when all of it is there; what the browser complains of is thrown. */
async function draw(browser, link) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, colorScheme: 'light' });
  const complaints = [];
  page.on('console', message => message.type() === 'error' && complaints.push(message.text()));
  page.on('pageerror', error => complaints.push(error.message));
  await page.goto(link);
  await page.waitForURL(url => !url.pathname.endsWith('/enter'));
  await page.goto(link.replace(/\/enter#.*/, path));
  await page.waitForLoadState('networkidle');
  await page.waitForFunction(() => document.querySelector('figure') && !document.querySelector('.skeleton'));
  const notices = await page.locator('[role=alert]').allTextContents();
  if (complaints.length + notices.length) throw new Error(`the page complains: ${[...complaints, ...notices].join('; ')}`);
  return { picture: await page.screenshot(), lines: await page.evaluate(outline, FIGURES) };
}

function keep(picture, lines) {
  if (picture.length > MOST_BYTES) throw new Error(`the picture has ${picture.length} bytes, more than ${MOST_BYTES}`);
  const isSame = existsSync(out) && picture.equals(readFileSync(out));
  if (!isSame) writeFileSync(out, picture);
  writeFileSync(outlineFile, `${lines.join('\n')}\n`);
  process.stdout.write(`${out}: ${isSame ? 'as it was' : 'new'}, ${picture.length} bytes\n`);
}

if (!existsSync(join(data, 'snapshot.duckdb'))) throw new Error(`${data} has no snapshot: run npm run demo first, or name a data folder`);
const executablePath = ['chromium', 'chromium-browser', 'google-chrome'].map(name => `/usr/bin/${name}`).find(existsSync);
if (!executablePath) throw new Error('no Chromium in /usr/bin: the picture is made with it');
const served = spawn(process.execPath, [join(root, 'dist/src/cli/main.js'), 'console', '--no-open', '--role', 'reader'], {
  env: { ...process.env, RINGNECK_DATA: data, RINGNECK_CONSOLE_PORT: '0' },
  stdio: ['ignore', 'pipe', 'inherit'],
});
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  const link = await Promise.race([
    once(served.stdout, 'data').then(([text]) => String(text).trim()),
    once(served, 'exit').then(() => Promise.reject(new Error(`no console over ${data}`))),
  ]);
  const { picture, lines } = await draw(browser, link);
  if (!values.check) keep(picture, lines);
  else {
    const differences = await differencesOf(browser, picture, lines);
    process.stdout.write(`${out}: ${differences.length ? 'the page is another now' : 'shows the page as it is'}\n`);
    for (const line of differences) process.stdout.write(`${line}\n`);
    if (differences.length) {
      process.stdout.write('npm run screenshot makes it anew: look at it, and commit it with scripts/screenshot.txt\n');
      process.exitCode = 1;
    }
  }
} finally {
  await browser.close();
  served.kill('SIGINT');
}
