import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { isRunning } from '../../src/base/is-running.ts';
import { printPdf } from '../../src/console/server/print-pdf.ts';
import { violationsOf } from '../support/axe.ts';
import { hasChromium, openChromium } from '../support/chromium.ts';
import { ringneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { withDuckDB } from '../support/warehouse.ts';
import { placePeople, sleepOf } from './people-by-hand.ts';

const folder = tempFolder();
const dayOf = (at: number) => new Date(Date.UTC(2025, 9, 1 + at)).toISOString().slice(0, 10);
/** 1 October to 30 November 2025. */
const DAYS = Array.from({ length: 61 }, (_, at) => dayOf(at));
const HOSTILE = '<script>alert(1)</script><img src=http://elsewhere.test/x onerror=alert(2)> & "more"';

/** No night on the 5th (could not be read), the 6th (the ring lay elsewhere) and the 7th (a nap); on the 10th a flight to Nepal. */
function nightOf(day: string, at: number) {
  if (['2025-11-05', '2025-11-06', '2025-11-07'].includes(day)) return [];
  const before = day <= '2025-11-10' ? '+01:00' : '+05:45';
  const after = day < '2025-11-10' ? '+01:00' : '+05:45';
  const isIll = day === '2025-11-13';
  return [
    sleepOf(day, `${day}T00:15:00${before}`, `${day}T07:${10 + (at % 3)}:00${after}`, {
      // 30 minutes deep, 30 light, 15 REM, 15 awake, and then no more.
      sleep_phase_5_min: '111111222222333444',
      total_sleep_duration: (day < '2025-11-01' ? 25_200 : 24_000) + 600 * (at % 5),
      average_hrv: isIll ? 30 : 50 + (at % 3),
      lowest_heart_rate: isIll ? 70 : 55 + (at % 2),
      average_breath: 15 + (at % 4) / 10,
    }),
  ];
}

const stampOf = (day: string) => `${day}T00:00:00+01:00`;
const PEOPLE = {
  ann: {
    sleep: [
      ...DAYS.flatMap(nightOf),
      sleepOf('2025-11-07', '2025-11-07T14:00:00+01:00', '2025-11-07T14:30:00+01:00', { type: 'late_nap', sleep_phase_5_min: '222222' }),
    ],
    daily_readiness: DAYS.filter(day => day !== '2025-11-20').map((day, at) => ({
      ...{ id: `r-${day}`, day, timestamp: stampOf(day), contributors: {} },
      temperature_deviation: (at % 3) / 10 - 0.1,
    })),
    daily_activity: [
      {
        ...{ id: 'a', day: '2025-11-06', timestamp: stampOf('2025-11-06'), non_wear_time: 54_000, resting_time: 32_400 },
        ...{ sedentary_time: 0, low_activity_time: 0, medium_activity_time: 0, high_activity_time: 0 },
      },
    ],
  },
  // The fullest month that there can be: every second night far from the usual in all ways, the others for reasons of their own.
  zoe: {
    sleep: DAYS.filter((_, at) => at < 28 || at % 2).map((day, at) =>
      sleepOf(day, `${day}T00:15:00+01:00`, `${day}T07:10:00+01:00`, {
        ...{ total_sleep_duration: at < 28 ? 25_200 + 60 * (at % 5) : 3600, average_hrv: at < 28 ? 50 + (at % 3) : 9 },
        ...{ lowest_heart_rate: at < 28 ? 55 : 99, average_heart_rate: at < 28 ? 60 + (at % 3) : 140, efficiency: 90 + (at % 2) },
        ...{ average_breath: at < 28 ? 15 + (at % 4) / 10 : 29, deep_sleep_duration: 3600, rem_sleep_duration: 3600 },
      }),
    ),
    daily_readiness: DAYS.slice(0, 28).map((day, at) => ({
      ...{ id: `r-${day}`, day, timestamp: stampOf(day), contributors: {}, temperature_deviation: (at % 3) / 10 },
    })),
  },
};

interface Window {
  user: string;
  collection: string;
  day: string;
  reason: string | null;
}

const BETWEEN = { user: 'zoe', collection: 'sleep', day: '', reason: '' };
const WINDOWS: readonly Window[] = [
  { user: 'ann', collection: 'sleep', day: '2025-11-05', reason: HOSTILE },
  { user: 'ann', collection: 'sleep', day: '2025-11-06', reason: null },
  { user: 'ann', collection: 'sleep', day: '2025-11-07', reason: null },
  { user: 'ann', collection: 'daily_readiness', day: '2025-11-20', reason: null },
  ...DAYS.slice(31).flatMap((day, at) => [
    { ...BETWEEN, day, reason: `${at} ${HOSTILE.repeat(3)}` },
    { ...BETWEEN, day, collection: 'daily_readiness', reason: `${at} ${'W'.repeat(300)}` },
    { ...BETWEEN, day, collection: 'daily_sleep', reason: `${at} ${'W '.repeat(150)}` },
  ]),
];

let data = '';
const env = () => ({ RINGNECK_DATA: data });
beforeAll(async () => {
  data = await placePeople(PEOPLE);
  await withDuckDB(join(data, 'warehouse.duckdb'), async connection => {
    await connection.run("INSERT INTO sync.runs (run_id, kind, started_at, state) VALUES ('r', 'backfill', '2025-12-15', 'complete')");
    for (const { user, collection, day, reason } of WINDOWS) {
      const how = reason === null ? `'complete', NULL` : `'failed', '${reason.replaceAll("'", "''")}'`;
      await connection.run(
        `INSERT INTO sync.windows (run_id, user_id, collection, start_at, end_at, requested_at, read_at, committed_at, outcome, reason)
         VALUES ('r', '${user}', '${collection}', '${day}', '${day}'::DATE + 1, '2025-12-15', '2025-12-15', '2025-12-15', ${how})`,
      );
    }
  });
});

/** What stands between the tags. */
const textOf = (html: string) =>
  html
    .replace(/<[^>]*>/g, '\n')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
    .split('\n')
    .map(line => line.trim())
    .filter(Boolean);

const markupOf = (html: string, day: string) => new RegExp(`<tr data-day="${day}"[^>]*>(.*?)</tr>`).exec(html)?.[1] ?? '';
const rowOf = (html: string, day: string) =>
  textOf(markupOf(html, day).replace('</span> ', ' '))
    .join(' | ')
    .replace(/^(\w+) \| /, '$1 ');
const noteOf = (html: string, title: string) => textOf(new RegExp(`<h2>${title}</h2>(.*?)</section>`).exec(html)?.[1] ?? '');
const sentenceOf = (html: string) =>
  textOf(/<p class="sentence">(.*?)<\/p>/.exec(html)?.[1] ?? '')
    .join(' ')
    .replaceAll(/ (?=[,;.])/g, '');

async function htmlOf(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runHere(['report', ...args, '--out', '-'], { env: env() });
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
}

test('a month is told with its nights, what is unusual, what is missing and why', async () => {
  const html = await htmlOf('ann', '--month', '2025-11');
  expect(sentenceOf(html)).toBe(
    '7 h 00 asleep, 20 min less than in the 28 days before; in bed from 00:15 to 07:11 (medians of 27 nights of 30 days). 1 day was unusual: 13 Nov.',
  );
  expect(['01', '05', '06', '07', '10', '13', '20'].map(day => rowOf(html, `2025-11-${day}`))).toEqual([
    'Sat 1 | 00:15–07:11 | 51 | 56 | 0.00 | ◆ 6 h 50 | 15.3 | —',
    'Wed 5 | — could not be read (<script>alert(1)</script><img src=http://elsewh…) | — | — | — | +0.10 | — | — | —',
    'Thu 6 | — the service has none; ring not worn for 15 h 00 | — | — | — | −0.10 | — | — | —',
    'Fri 7 | — only a nap | — | — | — | 0.00 | — | — | —',
    'Mon 10 | UTC+5:45 | 00:15–07:11 | 51 | 55 | 0.00 | ◆ 6 h 40 | 15.0 | —',
    'Thu 13 | 00:15–07:11 | ◆ 30 | ◆ 70 | 0.00 | 7 h 10 | 15.3 | —',
    'Thu 20 | 00:15–07:12 | 52 | 55 | — | ◆ 6 h 40 | 15.2 | —',
  ]);
  expect(noteOf(html, 'Unusual')).toEqual([
    '13 Nov: Lowest heart rate (70 bpm) is well above, heart rate variability (30 ms) is well below what is usual for ann.',
  ]);
  expect(noteOf(html, 'Missing')).toEqual([
    'No night, 5 Nov: could not be read (<script>alert(1)</script><img src=http://elsewh…).',
    'No night, 6 Nov: the service has none; ring not worn for 15 h 00.',
    'No night, 7 Nov: only a nap.',
    'Temperature, 20 Nov: the service has none.',
    'Sleep score, 1–4 and 8–30 Nov: not asked for since the day was over.',
  ]);
  expect(noteOf(html, 'How it was measured')[1]).toBe(
    'A night counts on the day of waking. Hours are those of ann’s own clock (UTC+1, UTC+5:45 from 10 Nov).',
  );
});

test('the stages of a night lie from noon to noon by the clock with which it began', async () => {
  const html = await htmlOf('ann', '--month', '2025-11');
  const pieces = [...markupOf(html, '2025-11-10').matchAll(/data-stage="(.)" data-from="(\d+)" data-to="(\d+)"/g)];
  expect(pieces.map(([, stage, from, to]) => [stage, Number(from), Number(to)])).toEqual([
    // 00:15 is 12 h 15 after noon; each digit is five minutes.
    ['d', 44_100, 45_900],
    ['l', 45_900, 47_700],
    ['r', 47_700, 48_600],
    ['a', 48_600, 49_500],
  ]);
});

test('values, marks and medians are those of the base tables', async () => {
  const html = await htmlOf('ann', '--month', '2025-11', '--metrics', 'average_hrv,lowest_heart_rate');
  const rows = await withDuckDB(join(data, 'warehouse.duckdb'), async connection => {
    const reader = await connection.runAndReadAll(`
      WITH night AS (SELECT day, average_hrv AS hrv, lowest_heart_rate AS lowest FROM sleep WHERE user_id = 'ann' AND type = 'long_sleep'),
      before AS (
        SELECT n.day, median(b.hrv) AS hrv, mad(b.hrv) AS hrv_mad, median(b.lowest) AS lowest, mad(b.lowest) AS lowest_mad
        FROM night n JOIN night b ON b.day >= n.day - 28 AND b.day < n.day GROUP BY n.day
      )
      SELECT
        n.day::VARCHAR,
        CASE WHEN abs(n.hrv - b.hrv) / greatest(1.4826 * hrv_mad, 0.02 * b.hrv) >= 2 THEN '◆ ' ELSE '' END || n.hrv,
        CASE WHEN abs(n.lowest - b.lowest) / greatest(1.4826 * lowest_mad, 1) >= 2 THEN '◆ ' ELSE '' END || n.lowest
      FROM night n JOIN before b USING (day) WHERE n.day >= DATE '2025-11-01' ORDER BY 1`);
    return reader.getRowsJson() as string[][];
  });
  expect(rows).toHaveLength(27);
  expect(rows.map(([day = '']) => rowOf(html, day).split(' | ').slice(-2))).toEqual(rows.map(([, hrv, lowest]) => [hrv, lowest]));
  const [, points = ''] = /data-points="(2025-11-08[^"]*)"/.exec(html) ?? [];
  expect(points.split(' ').map(point => point.split(','))).toEqual(
    rows.filter(([day = '']) => day >= '2025-11-08').map(([day, hrv]) => [day, hrv?.replace('◆ ', '')]),
  );
});

test('a month that is not over is said to be so, and is not compared', async () => {
  const elsewhere = join(folder, 'elsewhere');
  mkdirSync(elsewhere, { mode: 0o700 });
  const snapshot = join(elsewhere, 'snapshot.duckdb');
  copyFileSync(join(data, 'snapshot.duckdb'), snapshot);
  chmodSync(snapshot, 0o600);
  await withDuckDB(snapshot, connection => connection.run(`UPDATE sync.snapshot SET taken_at = '2025-11-20 12:00:00'`));
  const report = (...args: string[]) => runHere(['report', 'ann', ...args, '--out', '-'], { env: { RINGNECK_DATA: elsewhere } });
  const { stdout } = await report('--month', '2025-11');
  expect(sentenceOf(stdout)).toMatch(
    /^November 2025 is not over\. 7 h 00 asleep; in bed from 00:15 to 07:11 \(medians of 17 nights of 20 days so far\)\./,
  );
  expect(stdout.match(/<tr data-day/g)).toHaveLength(20);
  expect(await report('--month', '2025-12')).toMatchObject({
    code: 2,
    stderr: 'ringneck: 2025-12 has not begun yet: what is stored is of 2025-11-20\n',
  });
});

test('few metrics fill the page as many do', async () => {
  const boxesOf = async (metrics: string) => {
    const html = await htmlOf('ann', '--month', '2025-11', '--metrics', metrics);
    const [, strip] = /<svg class="raster-strip" viewBox="([^"]*)"/.exec(html) ?? [];
    return [strip, ...[...html.matchAll(/<svg class="trend" viewBox="([^"]*)"/g)].map(([, box]) => box)];
  };
  expect(await boxesOf('average_hrv')).toEqual(['0 0 440 12', '0 0 703 230']);
  expect(await boxesOf('average_hrv,steps')).toEqual(['0 0 400 12', '0 0 344 230', '0 0 344 230']);
  expect(await boxesOf('average_hrv,steps,efficiency,sleep_score')).toEqual(['0 0 320 12', ...new Array(4).fill('0 0 344 114')]);
});

test('of a month without data the page says so', async () => {
  const { code, stdout, stderr } = await runHere(['report', 'ann', '--month', '2024-02', '--out', '-'], { env: env() });
  expect([code, stderr]).toEqual([0, 'nothing is stored of ann for 2024-02: the page says why\n']);
  expect(sentenceOf(stdout)).toBe('No night of February 2024 is stored.');
  expect(stdout.match(/<tr data-day/g)).toHaveLength(29);
  expect(noteOf(stdout, 'Missing')[0]).toBe('No night, 1–29 Feb: not asked for since the day was over.');
  expect(noteOf(stdout, 'Unusual')).toEqual(['Nothing is judged before there are 14 nights.']);
});

test('the file is for its owner alone, and replaces another only by --force', async () => {
  const file = join(folder, 'ann.html');
  const write = (...more: string[]) => runHere(['report', 'ann', '--month', '2025-11', '--out', file, ...more], { env: env() });
  expect(await write()).toEqual({ code: 0, stdout: `${file}\n`, stderr: '' });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  writeFileSync(file, 'mine');
  expect(await write()).toEqual({
    code: 2,
    stdout: '',
    stderr: `ringneck: ${file} is there already: name another by --out, or replace it with --force\n`,
  });
  expect(readFileSync(file, 'utf8')).toBe('mine');
  expect(await write('--force')).toMatchObject({ code: 0 });
  expect(readFileSync(file, 'utf8')).toMatch(/^<!doctype html>/);
});

test.each([
  [['ana', '--month', '2025-11'], 'there is no account ana (did you mean ann?): there are ann, zoe'],
  [['../x', '--month', '2025-11'], '"../x" cannot name an account'],
  [['ann'], "required option '--month <month>' not specified"],
  [['ann', '--month', '2025-13'], 'expected a month, YYYY-MM'],
  [['ann', '--month', '2025-11', '--metrics', 'average_hvr'], '"average_hvr" is no metric: did you mean average_hrv?'],
  [['ann', '--month', '2025-11', '--metrics', 'a,b'], '"a" is no metric'],
  [
    [
      'ann',
      ...['--month', '2025-11', '--metrics'],
      'average_hrv,lowest_heart_rate,average_heart_rate,average_breath,steps,efficiency,sleep_score',
    ],
    'expected at most 6 metrics',
  ],
  [['ann', '--month', '2025-11', '--pdf', '--out', '-'], '--pdf is written to a file'],
  [['ann', '--month', '2025-11', '--out', '/nowhere/at/all.html'], 'there is no folder /nowhere/at'],
])('wrong usage is told in a line: report %j', async (args, message) => {
  const { code, stdout, stderr } = await runHere(['report', ...args], { env: env() });
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(message);
  expect(stderr.trimEnd().split('\n')).toHaveLength(1);
});

const pdfOf = (file: string, more: Record<string, string> = {}, person = 'ann', ...args: string[]) =>
  ringneck(['report', person, '--month', '2025-11', '--pdf', '--out', file, ...args], { env: { ...env(), ...more } });

/** A program in place of a browser. */
function placeBrowser(name: string, script: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return path;
}

test('without Chromium, --pdf says what to install, and leaves nothing behind', async () => {
  const temporary = join(folder, 'tmp');
  mkdirSync(temporary);
  const file = join(folder, 'none.pdf');
  expect(await pdfOf(file, { PATH: join(folder, 'nothing'), TMPDIR: temporary })).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'ringneck: --pdf needs Chromium, and none is found: install it (apt install chromium), or name one by RINGNECK_CHROMIUM, or leave --pdf out and print the page from a browser\n',
  });
  const failing = placeBrowser('failing', 'env > "$(dirname "$0")/seen"; echo "[1:1:ERROR:x] it broke" >&2; exit 0');
  const secret = { RINGNECK_SECRET_KEY: 'a secret of sixteen letters' };
  const { code, stderr } = await pdfOf(file, { RINGNECK_CHROMIUM: failing, TMPDIR: temporary, ...secret });
  expect([code, stderr]).toEqual([1, expect.stringContaining(`${failing} made no PDF ([1:1:ERROR:x] it broke)`)]);
  expect(readFileSync(join(folder, 'seen'), 'utf8')).not.toContain('RINGNECK');
  expect(await pdfOf(file, { RINGNECK_CHROMIUM: join(folder, 'gone'), TMPDIR: temporary })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('RINGNECK_CHROMIUM names no program that can be started'),
  });
  expect([existsSync(file), readdirSync(temporary)]).toEqual([false, []]);
});

test('a browser that does not end is ended with all that it has started', async () => {
  const pids = join(folder, 'pids');
  const browser = placeBrowser('hanging', `sleep 600 & echo $! > "${pids}"; sleep 600`);
  const options = { browser, env: { PATH: process.env.PATH }, signal: new AbortController().signal };
  await expect(printPdf('<p>', { ...options, limit: 2_000 })).rejects.toThrow(`${browser} made no PDF in 2 s; or leave --pdf out`);
  await expect.poll(() => isRunning(Number(readFileSync(pids, 'utf8')))).toBe(false);
});

test.runIf(hasChromium)('a PDF is one page, however much there is to say', async () => {
  for (const [person, ...args] of [['ann'], ['zoe'], ['zoe', '--metrics', 'average_hrv']] as const) {
    const file = join(folder, `${person}${args.length}.pdf`);
    expect(await pdfOf(file, {}, person, ...args)).toEqual({ code: 0, stdout: `${file}\n`, stderr: '' });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const text = readFileSync(file, 'latin1');
    expect(text.match(/\/Type ?\/Page\b/g)).toHaveLength(1);
    // A4 in points.
    expect(text).toMatch(/\/MediaBox ?\[0 0 59[45]\.\d+ 84[12]\.\d+\]/);
  }
});

test.runIf(hasChromium)('the page needs nothing and runs nothing, and nothing speaks against it', async () => {
  const file = join(folder, 'page.html');
  writeFileSync(file, await htmlOf('ann', '--month', '2025-11'));
  const browser = await openChromium();
  const context = await browser.newContext({ bypassCSP: false });
  const page = await context.newPage();
  const asked: string[] = [];
  const complaints: string[] = [];
  page.on('request', request => asked.push(request.url()));
  page.on('console', message => complaints.push(message.text()));
  page.on('dialog', dialog => complaints.push(dialog.message()));
  await page.goto(pathToFileURL(file).href);
  expect([asked, complaints]).toEqual([[pathToFileURL(file).href], []]);
  expect(await page.locator('script, img, link, iframe').count()).toBe(0);
  expect(await page.locator('tr[data-day="2025-11-05"] .why').textContent()).toContain('<script>alert(1)</script>');
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  expect(await violationsOf(page)).toEqual([]);
});
