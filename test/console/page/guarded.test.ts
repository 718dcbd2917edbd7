import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { hasChromium, openChromium } from '../../support/chromium.ts';
import { openConsoleHere } from '../../support/console-harness.ts';
import { enterConsole } from '../../support/console-page.ts';
import { openHarness } from '../../support/harness.ts';
import { startLiteralService } from '../../support/literal-service.ts';
import { night } from '../../support/nights.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { placePeople } from '../people-by-hand.ts';

const folder = tempFolder();

/** In the page: what became of each attempt to have it run or load something. */
const ATTEMPTS = `(async () => {
  const attempt = work => { try { work(); return 'done'; } catch (error) { return error.name; } };
  const script = document.createElement('script');
  const handler = document.createElement('button');
  const onclick = attempt(() => handler.setAttribute('onclick', 'globalThis.ran = true'));
  const inline = document.createElement('p');
  inline.setAttribute('style', 'color: rgb(1, 2, 3)');
  document.body.append(inline);
  return {
    onclick,
    html: attempt(() => { document.body.innerHTML = '<img src=x onerror="globalThis.ran = true">'; }),
    text: attempt(() => { script.text = 'globalThis.ran = true'; }),
    source: attempt(() => { script.src = '/assets/x.js'; }),
    policy: attempt(() => trustedTypes.createPolicy('default', { createHTML: text => text })),
    // What the tools of the browser evaluate may do so itself, what comes of it later not.
    code: await new Promise(done => setTimeout(() => done(attempt(() => new Function('globalThis.ran = true')())))),
    elsewhere: await fetch('http://127.0.0.1:9/').then(() => 'done', error => error.name),
    style: getComputedStyle(inline).color === 'rgb(1, 2, 3)' ? 'done' : 'none',
    ran: globalThis.ran === true,
  };
})()`;

test.skipIf(!hasChromium)('the browser itself refuses scripts, markup, styles and addresses that the page does not have', async () => {
  const served = await openConsoleHere(await placePeople({ ann: {} }));
  const { page, complaints, open } = await enterConsole(await openChromium(), served);
  await open('/');
  expect(await page.evaluate(ATTEMPTS)).toEqual({
    ...{ onclick: 'TypeError', html: 'TypeError', text: 'TypeError', source: 'TypeError', policy: 'TypeError', code: 'EvalError' },
    ...{ elsewhere: 'TypeError', style: 'none', ran: false },
  });
  for (const directive of ['require-trusted-types-for', 'trusted-types', 'connect-src', 'style-src-attr'])
    await expect.poll(() => complaints.some(text => text.startsWith(directive)), { message: directive }).toBe(true);
});

const HOSTILE = '</td><img src=x onerror=alert(1)><script>alert(2)</script>';

test.skipIf(!hasChromium)(
  'a paused account and a collection that answers 503 are told in coverage, markup of the log stays text, hours are UTC wherever one looks from',
  async () => {
    const service = await startLiteralService('sleep', 'daily_sleep');
    onTestFinished(() => service.close());
    service.documents.set('sleep', [night('s-1', '2025-03-08'), night('s-2', '2025-03-09')]);
    service.on('/v2/usercollection/daily_sleep', () => ({ status: 503, json: { detail: 'Not now.' } }));
    const data = join(folder, 'unavailable');
    const harness = await openHarness(data, service.url);
    await harness.keep([
      { name: 'ada', token: 'a' },
      { name: 'ben', token: 'b' },
    ]);
    await harness.backfill({ users: ['ada'], collections: ['sleep', 'daily_sleep'], from: '2025-03-08', to: '2025-03-09' });
    await harness.commands.pauseAccount({ name: 'ben' });
    await harness.commands.snapshot({}, { signal: new AbortController().signal });
    const log = createLog({ level: 'info', pretty: false, stream: { write: () => undefined } });
    log.warn({ reason: HOSTILE }, HOSTILE);
    const at = new Date().toISOString().slice(11, 16);
    const served = await openConsoleHere(data, { commands: harness.commands, now: () => Date.UTC(2025, 2, 10, 23) });
    const browser = await openChromium();
    const seen = [];
    for (const timezoneId of ['UTC', 'Pacific/Auckland', 'America/Los_Angeles']) {
      const { page, complaints, open } = await enterConsole(browser, served, { role: 'operator', timezoneId });
      const of = async (path: string) => {
        await open(path);
        return page.locator('main').innerText();
      };
      const coverage = await of('/coverage?from=2025-03-08&to=2025-03-09&sort=name&collection=daily_sleep&cell=ada/2025-03-08');
      const letters = await page.locator('.matrix-cells canvas').evaluate(canvas => '__data__' in canvas && canvas.__data__);
      expect(letters, timezoneId).toMatchObject({ rows: [{ letters: 'ff' }, { letters: 'oo' }] });
      const cell = await page.getByRole('row', { name: /^daily_sleep/ }).innerText();
      expect(cell, timezoneId).toMatch(/failed.*503/s);
      const sleep = await page.getByRole('row', { name: /^sleep\s/ }).innerText();
      expect(sleep, timezoneId).toContain('stored');
      const paused = await of('/coverage?from=2025-03-08&to=2025-03-09&cell=ben/2025-03-08');
      expect(paused, timezoneId).toContain('Of 17 collections of ben: 17 not asked.');
      expect(paused, timezoneId).toContain('the account is paused');
      const overview = await of('/');
      await open('/operations');
      await page.getByRole('button', { name: 'Show the last lines' }).click();
      const line = page.getByRole('region', { name: 'Log, newest first' }).getByRole('row').filter({ hasText: HOSTILE });
      expect(await line.innerText(), timezoneId).toContain(`reason: ${HOSTILE}`);
      expect((await line.getByRole('cell').allInnerTexts())[0], timezoneId).toMatch(new RegExp(`^${at.slice(0, 2)}:`));
      expect(await page.locator('main :is(img, script)').count(), timezoneId).toBe(0);
      const { body } = await (await served.enter()).ask('GET sessions');
      const [opened] = body.sessions.map(({ opened: at }: { opened: number }) =>
        new Date(at * 1000).toISOString().slice(0, 16).replace('T', ' '),
      );
      await page.getByText(opened).first().waitFor();
      const runs = await page.locator('section:has(> h2:text-is("Runs"))').innerText();
      seen.push([coverage, paused, overview, runs]);
      expect(complaints, timezoneId).toEqual([]);
    }
    expect(seen[1]).toEqual(seen[0]);
    expect(seen[2]).toEqual(seen[0]);
  },
);
