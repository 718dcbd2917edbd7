import { expect, test } from 'vitest';
import { checkInvitations } from '../../src/app/doctor/service.ts';
import { findFreePort } from '../../src/app/free-port.ts';
import { askToSignIn } from '../../src/sign-in/login.ts';
import { allowAt, hasChromium, openChromium, openPhone } from '../support/chromium.ts';
import { openEnrolment } from '../support/enrolment-harness.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { isWhole } from '../support/whole.ts';

const folder = tempFolder();

test.skipIf(!hasChromium)(
  'on a phone without JavaScript a person is enrolled, and withdraws; nothing is wider than the screen',
  async () => {
    const { harness, invite } = await openEnrolment(folder, 'phone');
    const { page, complaints } = await openPhone(await openChromium(), { locale: 'de-CH' });
    await page.goto(await invite('p01'));
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('The Night <Study>: die Daten Ihres Rings teilen');
    await page.getByRole('button', { name: 'Ich bin einverstanden' }).click();
    await allowAt(page, 'ada', ['spo2Daily']);
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Vielen Dank');
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
    await page.reload();
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Vielen Dank');
    expect(await harness.read('SELECT user_id, state FROM sync.accounts')).toEqual([['p01', 'active']]);
    await page.getByRole('link').click();
    await page.getByRole('button', { name: 'Widerrufen' }).click();
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Sie haben widerrufen');
    expect(await harness.read('SELECT user_id, state FROM sync.accounts')).toEqual([['p01', 'paused']]);
    expect(complaints).toEqual([]);
  },
);

test.skipIf(!hasChromium)('account login goes through the sandbox’s page in a browser, and its listener takes the answer', async () => {
  const redirectUrl = `http://127.0.0.1:${await findFreePort()}/callback`;
  const { harness } = await openEnrolment(folder, 'login', { redirectUrl });
  const { page } = await openPhone(await openChromium());
  const settings = { ...(await harness.commands.beginLogin({ name: 'ada' })), redirectUrl };
  const answer = await askToSignIn({
    settings,
    again: 'ringneck account login ada',
    open: async url => {
      await page.goto(url);
      // The listener answers the browser while this is still under way.
      await allowAt(page, 'ada');
    },
    listens: true,
    paste: async () => '',
    timeoutMs: 120_000,
    signal: new AbortController().signal,
  });
  expect(await harness.commands.finishLogin({ name: 'ada', ...answer, redirectUrl })).toMatchObject({ user_id: 'ada', state: 'active' });
});

test('thirty people are enrolled by links, each as who they are', async () => {
  const { harness, invite, enrol, sandbox } = await openEnrolment(folder, 'thirty', { people: 30 });
  const people = sandbox.people.map(({ name, user_id: id }, i) => ({ name, id, user: `p${String(i + 1).padStart(2, '0')}` }));
  const left = people.values();
  const titles: string[] = [];
  const work = async () => {
    for (const { name, user } of left) titles.push((await enrol(await invite(user), name)).title);
  };
  await Promise.all(Array.from({ length: 6 }, work));
  expect(titles).toEqual(people.map(() => 'Thank you'));
  expect(await harness.read('SELECT user_id, service_user_id, state FROM sync.accounts ORDER BY user_id')).toEqual(
    people.map(({ user, id }) => [user, id, 'active']),
  );
  expect(await harness.read('SELECT count(*), count(DISTINCT user_id) FROM sync.consents WHERE withdrawn_at IS NULL')).toEqual([[30, 30]]);
  expect(await harness.commands.listInvitations()).toEqual([]);
  expect(await checkInvitations(harness.app.settings.enrolment!)).toMatchObject([{ check: 'invitations', state: 'ok' }]);
});

test.skipIf(!hasChromium || !isWhole)('thirty people are enrolled by links in a browser', async () => {
  const { harness, invite, sandbox } = await openEnrolment(folder, 'thirty-phones', { people: 30 });
  const browser = await openChromium();
  const left = sandbox.people.entries();
  const work = async () => {
    for (const [i, { name }] of left) {
      const { page, complaints } = await openPhone(browser, { locale: i % 2 ? 'de-CH' : 'en-GB' });
      await page.goto(await invite(`p${i}`));
      await page.getByRole('button').click();
      await allowAt(page, name);
      expect([await page.getByRole('heading', { level: 1 }).textContent(), complaints]).toEqual([i % 2 ? 'Vielen Dank' : 'Thank you', []]);
      await page.context().close();
    }
  };
  await Promise.all(Array.from({ length: 3 }, work));
  expect(await harness.read(`SELECT count(*), count(DISTINCT service_user_id) FROM sync.accounts WHERE state = 'active'`)).toEqual([
    [30, 30],
  ]);
});
