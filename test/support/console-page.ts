import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import type { Grant } from '../../src/console/server/sessions.ts';
import { takePage } from './chromium.ts';

interface Served {
  url: string;
  createLink(grant: Grant): string;
}

/** Somebody who has come in; `complaints` is what the browser has against the page, and each request to elsewhere. */
export interface Looking {
  page: Page;
  complaints: string[];
  /** Goes to a screen and waits until it is drawn. */
  open(path: string): Promise<void>;
}

/** Lets a browser in without loading the page for it, which takes as long as a test: what the link does is asked for, and the answer’s cookie set. */
export async function letIn(context: BrowserContext, served: Served, grant: Grant): Promise<void> {
  const code = new URL(served.createLink(grant)).hash.slice(1);
  const origin = new URL(served.url).origin;
  const headers = { origin, 'content-type': 'application/json' };
  const answer = await fetch(`${served.url}/api/enter`, { method: 'POST', headers, body: JSON.stringify({ code }) });
  const [, name = '', value = ''] = /^([^=]+)=([^;]+)/.exec(answer.headers.get('set-cookie') ?? '') ?? [];
  await context.addCookies([{ name, value, url: origin, httpOnly: true, sameSite: 'Strict' }]);
}

/** A browser that has come in. What is refused on purpose is no complaint: its status alone. */
export async function enterConsole(
  browser: Browser,
  served: Served,
  { role = 'reader', person = null, ...options }: BrowserContextOptions & Partial<Grant> = {},
): Promise<Looking> {
  const page = await takePage(browser, { viewport: { width: 1440, height: 900 }, ...options }, new URL(served.url).origin);
  await letIn(page.context(), served, { role, person });
  const complaints: string[] = [];
  page.on('console', message => complaints.push(message.text()));
  page.on('pageerror', error => complaints.push(error.message));
  page.on('request', request => {
    if (!request.url().startsWith(served.url) && !/^(blob|data):/.test(request.url())) complaints.push(request.url());
  });
  return {
    page,
    complaints,
    async open(path) {
      await page.goto(`${served.url}${path}`);
      await page.locator('main h1').waitFor();
      await drawn(page);
    },
  };
}

/** Nothing is loading any more, and what came is drawn. */
export async function drawn(page: Page): Promise<void> {
  await page.evaluate(`new Promise(done => {
    const look = () => requestAnimationFrame(document.querySelector('.skeleton') ? look : () => requestAnimationFrame(done));
    look();
  })`);
}
