import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { onTestFinished } from 'vitest';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** Where this machine has Chromium. DEMAND_TOOLS=1 turns its absence into a failure instead of skipped tests. */
const found = (process.env.PATH ?? '')
  .split(delimiter)
  .flatMap(folder => NAMES.map(name => join(folder, name)))
  .find(path => existsSync(path));
if (found === undefined && process.env.DEMAND_TOOLS === '1')
  throw new Error(`none of ${NAMES.join(', ')} is on the PATH, and DEMAND_TOOLS=1 demands one`);

export const hasChromium = found !== undefined;

let launched: Promise<Browser> | undefined;

/** A real browser, without a window: one for all files of a worker, with which it ends. In a container, as root, it has no sandbox of its own. */
export function shareChromium(): Promise<Browser> {
  launched ??= chromium.launch({ executablePath: found ?? NAMES[0], args: ['--no-sandbox'] });
  return launched;
}

/** The same for one test: what the test opens in it is closed with the test. */
export async function openChromium(): Promise<Browser> {
  const browser = await shareChromium();
  onTestFinished(async () => {
    for (const context of browser.contexts()) if (!kept.has(context)) await context.close();
  });
  return browser;
}

const kept = new Set<BrowserContext>();
const unused = new Map<string, Page[]>();

/** A page for one test, as empty as a new one, whose process takes a second to start: it was another test’s before. */
export async function takePage(browser: Browser, options: BrowserContextOptions, origin: string): Promise<Page> {
  const same = unused.get(JSON.stringify(options)) ?? [];
  unused.set(JSON.stringify(options), same);
  const page = same.pop() ?? (await newPage(browser, options));
  const context = page.context();
  onTestFinished(async ({ task }) => {
    if (task.result?.state !== 'pass') return context.close();
    for (const other of context.pages()) if (other !== page) await other.close();
    await page.removeAllListeners(undefined, { behavior: 'wait' });
    await page.unrouteAll({ behavior: 'wait' });
    await page.emulateMedia({ media: null, colorScheme: options.colorScheme ?? null });
    if (options.viewport) await page.setViewportSize(options.viewport);
    // By itself it stays in its process.
    await page.evaluate("location.replace('about:blank')");
    await page.waitForURL('about:blank');
    const devtools = await context.newCDPSession(page);
    await devtools.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' });
    await devtools.detach();
    same.push(page);
  });
  return page;
}

async function newPage(browser: Browser, options: BrowserContextOptions): Promise<Page> {
  const context = await browser.newContext(options);
  kept.add(context);
  await context.addInitScript(
    "addEventListener('securitypolicyviolation', event => console.error(event.violatedDirective, event.blockedURI))",
  );
  return context.newPage();
}

/** A phone of its own, which runs no script; `complaints` is what the browser has against the pages. */
export async function openPhone(browser: Browser, options: { locale?: string } = {}): Promise<{ page: Page; complaints: string[] }> {
  const context = await browser.newContext({ viewport: { width: 360, height: 740 }, javaScriptEnabled: false, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', message => complaints.push(message.text()));
  page.on('pageerror', error => complaints.push(error.message));
  return { page, complaints };
}

/** Fills in the page of the sandbox. */
export async function allowAt(page: Page, person: string, unticked: readonly string[] = []): Promise<void> {
  await page.locator('select[name=person]').selectOption({ label: person });
  for (const scope of unticked) await page.locator(`input[value="${scope}"]`).uncheck();
  await page.getByRole('button', { name: 'Allow' }).click();
}
