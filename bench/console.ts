import { utimesSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { chromium, type Page } from 'playwright-core';
import { addDays } from '../schema/instant.ts';
import { readSettings } from '../src/base/config.ts';
import { createLog } from '../src/base/log.ts';
import { openConsole } from '../src/console/server/console.ts';
import { BROWSER } from './browser.ts';
import { fillConsole, LAST_DAY, personNamed } from './console-warehouse.ts';
import { type Bench, quantile, type Row } from './row.ts';
import { defineTask, runTask, startTask } from './task.ts';

const PEOPLE = 50;
const LOOKS = 50;
/** Milliseconds to the last chart, p95. */
const LIMITS = { overview: 400, person: 500, day: 250, step: 120 } as const;
/** What is looked at first is asked within a second, and answered soon after; of publications that follow each other more quickly not each time. */
const AFTER_MS = 12_000;

/** Serves the console over a data folder that nobody owns, on the morning of its last day. */
export const serveConsole = defineTask(import.meta.url, 'serveConsole', async ({ data }: { data: string }) => {
  const parts = {
    settings: readSettings({ RINGNECK_DATA: data }),
    log: createLog({ level: 'warn', pretty: false }),
    now: () => Date.parse(`${LAST_DAY}T10:00:00Z`),
  };
  const { url, createLink } = await openConsole(parts, { host: '127.0.0.1', port: 0 });
  return { url, link: createLink({ role: 'reader', person: null }) };
});

/** How soon the screens of a large warehouse are drawn, in a real browser on the same machine. */
export async function measureConsole(bench: Bench): Promise<Row[]> {
  const data = bench.newFolder();
  const days = bench.consoleDays;
  const { samples } = await runTask(fillConsole, { data, people: PEOPLE, days });
  bench.say(`console: ${(samples / 1e6).toFixed(0)} M samples of ${PEOPLE} people are there`);
  return measureScreens(data, { samples, days, say: bench.say });
}

/** The same over a folder that `fillConsole` has filled. */
export async function measureScreens(
  data: string,
  { samples, days, say }: { samples: number; days: number; say(text: string): void },
): Promise<Row[]> {
  if (!BROWSER) {
    say('console: there is no Chromium, so no screen is measured');
    return [];
  }
  const served = await startTask(serveConsole, { data });
  const browser = await chromium.launch({ executablePath: BROWSER, args: ['--no-sandbox'] });
  try {
    const page = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage();
    await page.addInitScript(WATCH);
    await page.goto(served.result.link);
    await page.waitForURL(`${served.result.url}/`);
    const times = await look(page, served.result.url, { days, publish: () => publish(data) });
    for (const [name, list] of Object.entries(times)) say(`console, ${name}: ${list.map(ms => ms.toFixed(0)).join(' ')} ms`);
    return rowsOf(times, `${(samples / 1e6).toFixed(0)} M samples, ${PEOPLE} people × ${days} days`);
  } finally {
    await browser.close();
    await served.stop();
  }
}

/** Another snapshot, as far as readers can tell. */
function publish(data: string): void {
  const now = new Date();
  utimesSync(join(data, 'snapshot.duckdb'), now, now);
}

type Times = Record<
  keyof typeof LIMITS | 'overviewAtPublication' | 'overviewAgain' | 'personAfterPublication' | 'dayAfterPublication',
  number[]
>;

async function look(page: Page, url: string, { days, publish }: { days: number; publish(): void }): Promise<Times> {
  const open = async (path: string, chart: string) => {
    await page.goto(`${url}${path}`, { waitUntil: 'commit' });
    return drawnAfter(page, chart);
  };
  const many = async (count: number, work: (n: number) => Promise<number>) => {
    const list: number[] = [];
    for (let n = 0; n < count; n++) list.push(await work(n));
    return list;
  };
  const personAt = (n: number) => `/people/${personNamed(n % PEOPLE)}`;
  const dayAt = (n: number) => addDays(LAST_DAY, -((n * 17 + 3) % (days - 1)));
  const overview = await many(LOOKS, async () => {
    publish();
    await setTimeout(AFTER_MS);
    return open('/', '.people .sparkline');
  });
  const overviewAtPublication = await many(LOOKS / 5, () => {
    publish();
    return open('/', '.people .sparkline');
  });
  const overviewAgain = await many(LOOKS / 2, () => open('/', '.people .sparkline'));
  const person = await many(LOOKS, n => open(`${personAt(n)}?range=365d`, '.trend'));
  const personAfterPublication = await many(LOOKS / 5, n => {
    publish();
    return open(`${personAt(n + 9)}?range=365d`, '.trend');
  });
  const day = await many(LOOKS, n => open(`${personAt(n)}?day=${dayAt(n)}`, '.mets'));
  const dayAfterPublication = await many(LOOKS / 5, n => {
    publish();
    return open(`${personAt(n + 9)}?day=${dayAt(n)}`, '.mets');
  });
  await open(`${personAt(1)}?day=${addDays(LAST_DAY, -100)}`, '.mets');
  const step = await many(LOOKS, async n => {
    // Somebody looks at what is there before they go on.
    await setTimeout(1000);
    await page.keyboard.press('ArrowRight');
    return drawnAfter(page, `.shown[data-shown="${addDays(LAST_DAY, n - 99)}"]`);
  });
  return { overview, overviewAtPublication, overviewAgain, person, personAfterPublication, day, dayAfterPublication, step };
}

/** From the opening of the page, or the last key, until it is painted and changes no more. */
const drawnAfter = (page: Page, chart: string) => page.evaluate<number>(`drawn(${JSON.stringify(chart)})`);

const QUIET_MS = 250;
/** Notes when the page has last been painted after a change, and whether it still waits for an answer. */
const WATCH = `{
  let began = 0, asked = 0, changed = 0, painted = 0;
  const ask = window.fetch;
  window.fetch = (...request) => {
    asked++;
    const ended = () => { asked--; };
    return ask(...request).then(response => { response.clone().arrayBuffer().then(ended, ended); return response; }, error => { ended(); throw error; });
  };
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => { painted = performance.now(); };
  const onChange = () => {
    changed = performance.now();
    requestAnimationFrame(() => port2.postMessage(0));
  };
  new MutationObserver(onChange).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  addEventListener('keydown', ({ timeStamp }) => { began = timeStamp; }, true);
  window.drawn = chart => new Promise(resolve => {
    const look = () => {
      const isThere = document.querySelector(chart) && painted > began && painted > changed;
      if (isThere && asked === 0 && performance.now() - painted > ${QUIET_MS}) resolve(painted - began);
      else setTimeout(look, 20);
    };
    look();
  });
}`;

function rowsOf(times: Times, size: string): Row[] {
  const p95 = (list: readonly number[]) => `${quantile(list, 0.95).toFixed(0)} ms`;
  const measured = (list: readonly number[]) => `p50 ${quantile(list, 0.5).toFixed(0)}, p95 ${p95(list)}`;
  const row = (what: string, name: keyof typeof LIMITS, list: string): Row => ({
    what: `console: ${what}, to the last chart`,
    against: size,
    limit: `p95 ${LIMITS[name]} ms`,
    measured: list,
    holds: quantile(times[name], 0.95) <= LIMITS[name],
  });
  return [
    row(
      `open Overview, each time ${AFTER_MS / 1000} s after a publication`,
      'overview',
      `${measured(times.overview)}; again, of the same snapshot: ${measured(times.overviewAgain)}; at the very moment of a publication: ${measured(times.overviewAtPublication)}`,
    ),
    row(
      'open a person with a year of trends, another one each time',
      'person',
      `${measured(times.person)}; right after a publication ${measured(times.personAfterPublication)}`,
    ),
    row(
      'open one day of a person, another one each time',
      'day',
      `${measured(times.day)}; right after a publication ${measured(times.dayAfterPublication)}`,
    ),
    row('step to the next day, once a second', 'step', measured(times.step)),
  ];
}
