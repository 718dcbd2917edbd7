import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import type { Grant } from '../../src/console/server/sessions.ts';

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

/** A browser that has come in by a link. What is refused on purpose is no complaint: its status alone. */
export async function enterConsole(
  browser: Browser,
  served: Served,
  { role = 'reader', person = null, ...options }: BrowserContextOptions & Partial<Grant> = {},
): Promise<Looking> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', message => complaints.push(message.text()));
  page.on('pageerror', error => complaints.push(error.message));
  page.on('request', request => {
    if (!request.url().startsWith(served.url) && !/^(blob|data):/.test(request.url())) complaints.push(request.url());
  });
  await page.addInitScript(
    "addEventListener('securitypolicyviolation', event => console.error(event.violatedDirective, event.blockedURI))",
  );
  await page.goto(served.createLink({ role, person }));
  await page.waitForURL(url => !url.pathname.endsWith('/enter'));
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
