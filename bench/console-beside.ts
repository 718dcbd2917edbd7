import { setTimeout } from 'node:timers/promises';
import { type Browser, chromium, type Page } from 'playwright-core';
import { addDays } from '../schema/instant.ts';
import { BROWSER, browserStandingBack } from './browser.ts';
import { type EventHarness, endedWell, STORED_FROM, withEventHarness } from './event-harness.ts';
import { type Lag, LIVE_PER_SECOND, measureLag } from './events.ts';
import { type Bench, median, type Row } from './row.ts';

const PEOPLE = 3;
const LIMIT = 1.3;
/** Without and with people who click, so that neither is always the later one. */
const TURNS = [false, true, true, false] as const;
/** Days of a backfill that has not been there yet. */
const DAYS = 30;

interface Measured {
  lag: Lag[];
  /** CPU seconds of the process that owns the folder and serves the console. */
  backfill: number[];
}

/** What events wait and what a backfill costs while three people click through the console, and while nobody does: by turns, queue embedded. */
export async function measureBeside(bench: Bench): Promise<Row[]> {
  if (!BROWSER) return [];
  const without: Measured = { lag: [], backfill: [] };
  const beside: Measured = { lag: [], backfill: [] };
  const executablePath = browserStandingBack();
  for (let round = 0; round < bench.eventRounds; round++) {
    await withEventHarness(bench, 'embedded', async harness => {
      const inTurns = async (measure: (measured: Measured, what: string) => Promise<void>) => {
        for (const isLookedAt of TURNS) {
          const what = `console, ${isLookedAt ? `${PEOPLE} people click` : 'nobody looks'}, ${round + 1}`;
          const work = () => measure(isLookedAt ? beside : without, what);
          await (isLookedAt ? whileClicking(harness, { executablePath, work, say: bench.say }) : work());
        }
      };
      // What a backfill leaves to be published makes the events after it wait: they come first.
      await inTurns(async ({ lag }, what) => {
        lag.push(await measureLag(harness, bench.eventSeconds, text => bench.say(`${what}: ${text}`)));
      });
      let stored = STORED_FROM;
      const backfillBefore = async () => {
        const [from, to] = [addDays(stored, -DAYS), addDays(stored, -1)];
        const before = harness.up.cpu();
        await endedWell(harness.up.command('backfill', '--from', from, '--to', to));
        stored = from;
        return harness.up.cpu() - before;
      };
      // Beside each later one what the one before has left is published.
      await backfillBefore();
      await inTurns(async ({ backfill }, what) => {
        const cpu = await backfillBefore();
        bench.say(`${what}: backfill CPU ${cpu.toFixed(2)} s`);
        backfill.push(cpu);
      });
      await harness.read();
    });
  }
  return rowsOf(bench, without, beside);
}

/** Each in a browser session of their own. */
async function whileClicking(
  { up }: EventHarness,
  { executablePath, work, say }: { executablePath: string; work: () => Promise<void>; say: Bench['say'] },
): Promise<void> {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  const going = new AbortController();
  try {
    const pages: Page[] = [];
    for (let person = 0; person < PEOPLE; person++) pages.push(await enter(browser, await up.consoleLink()));
    const clicking = Promise.all(pages.map((page, person) => clickThrough(page, person, going.signal)));
    clicking.catch(() => undefined);
    await Promise.race([work(), clicking]);
    going.abort();
    say(`console: ${(await clicking).reduce((sum, clicks) => sum + clicks, 0)} clicks`);
  } finally {
    going.abort();
    await browser.close();
  }
}

async function enter(browser: Browser, link: string): Promise<Page> {
  const page = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage();
  await page.goto(link);
  await page.locator('.people .name').first().waitFor();
  return page;
}

const EACH_MS = 2_000;
const VARIES_MS = 1_000;

/** Overview, somebody, the days before, a query: one step each two to three seconds until the signal. How many there were. */
async function clickThrough(page: Page, person: number, signal: AbortSignal): Promise<number> {
  const onDay = () => page.locator('.trend').first().waitFor();
  const steps = [
    () => page.getByRole('link', { name: 'Overview', exact: true }).click(),
    (n: number) =>
      page
        .locator('.people .name')
        .nth((n * 7 + person * 11) % 40)
        .click(),
    onDay,
    () => page.keyboard.press('ArrowLeft'),
    () => page.keyboard.press('ArrowLeft'),
    () => page.getByRole('link', { name: 'SQL', exact: true }).click(),
    async () => {
      await page.getByRole('textbox', { name: 'SQL' }).click();
      await page.keyboard.press('ControlOrMeta+a');
      await page.keyboard.insertText('SELECT day, average_hrv FROM daily ORDER BY day');
      await page.keyboard.press('ControlOrMeta+Enter');
    },
    () => page.locator('#sql-result', { hasText: /\d row/ }).waitFor(),
  ];
  for (let n = 0; ; n++) {
    await setTimeout(EACH_MS + ((n * 389 + person * 331) % VARIES_MS), undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return n;
    await steps[n % steps.length]!(n);
  }
}

function rowsOf(bench: Bench, without: Measured, beside: Measured): Row[] {
  const p95 = (lags: readonly Lag[]) => median(lags.map(lag => lag.p95));
  const p50 = (lags: readonly Lag[]) => median(lags.map(lag => lag.p50));
  const lag = p95(beside.lag) / p95(without.lag);
  const cpu = median(beside.backfill) / median(without.backfill);
  const people = `${PEOPLE} people click through the console, each 2 to 3 s (Overview, people, days, SQL; their browser on the same cores with the lowest priority)`;
  return [
    {
      what: `event accepted → row readable, ${LIVE_PER_SECOND} events/s of all types for ${bench.eventSeconds} s, queue embedded, while ${people}`,
      against: 'the same while nobody looks, by turns',
      limit: `p95 ${LIMIT}×`,
      measured: `p95 ${lag.toFixed(2)}× (${p95(beside.lag).toFixed(0)} / ${p95(without.lag).toFixed(0)} ms); p50 ${p50(beside.lag).toFixed(0)} / ${p50(without.lag).toFixed(0)} ms`,
      holds: lag <= LIMIT,
    },
    {
      what: `backfill of ${DAYS} days of 50 accounts by \`up\`, queue embedded, while the same people click: CPU of \`up\`, which serves the console too`,
      against: 'the same while nobody looks, by turns',
      limit: `CPU ${LIMIT}×`,
      measured: `CPU ${cpu.toFixed(2)}× (${median(beside.backfill).toFixed(2)} / ${median(without.backfill).toFixed(2)} s)`,
      holds: cpu <= LIMIT,
    },
  ];
}
