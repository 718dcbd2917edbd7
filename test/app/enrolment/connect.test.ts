import { cpSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { checkSettings } from '../../../src/app/doctor/settings.ts';
import { RingneckError, TryLaterError } from '../../../src/base/errors.ts';
import { ServiceError } from '../../../src/client/error.ts';
import { SignInError } from '../../../src/sign-in/error.ts';
import { OAuthClient } from '../../../src/sign-in/oauth.ts';
import { Browser, openEnrolment, sharePlace, withdrawLinkOf } from '../../support/enrolment-harness.ts';
import { openHarness } from '../../support/harness.ts';
import { fillIn } from '../../support/sandbox-page.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const folder = tempFolder();
const shared = sharePlace(folder);

const originalFetch = globalThis.fetch;

const HASH = 'e295628a47c5fe6e5b3d3fafdbd9b65e41857807c34c7a4ffa6b3f99631509ee';
const ALL = 'personal daily heartrate workout tag session spo2Daily';

test('who signs in by a link is an account, and what they agreed to is kept', async () => {
  const { harness, invite, enrol, sandbox, lines } = await openEnrolment(folder, 'whole', shared);
  const link = await invite('p01');
  const done = await enrol(link, 'ada', ['spo2Daily']);
  expect([done.status, done.title]).toEqual([200, 'Thank you']);
  expect(done.html).toContain('<li>Workouts</li>');
  expect(done.html).not.toContain('Oxygen');
  const [ada] = sandbox.people;
  expect(await harness.read('SELECT user_id, service_user_id, state, reason FROM sync.accounts')).toEqual([
    ['p01', ada?.user_id, 'active', null],
  ]);
  expect(await harness.read('SELECT user_id, scopes, text_hash, language, withdrawn_at FROM sync.consents')).toEqual([
    ['p01', ALL.replace(' spo2Daily', ''), HASH, 'en', null],
  ]);
  expect(await harness.read('SELECT kind, user_id, expires_at FROM sync.links')).toEqual([['withdraw', 'p01', null]]);
  expect(await harness.backfill({ from: '2025-01-01', to: '2025-01-02', collections: ['sleep_time'] })).toMatchObject({
    state: 'complete',
  });
  for (const secret of [link, withdrawLinkOf(done)].map(url => url.split('/').at(-1) ?? '')) expect(lines.join('')).not.toContain(secret);
});

test('a link that was looked at, agreed to or refused can still be used; one that was used cannot', async () => {
  const { harness, invite, enrol } = await openEnrolment(folder, 'used', shared);
  const link = await invite('p01');
  const scanner = new Browser();
  for (let times = 0; times < 3; times++) expect((await scanner.open(link)).title).toBe('The Night <Study>: share the data of your ring');
  const sent = await scanner.submit(await scanner.open(link));
  expect([sent.status, sent.location?.includes('/oauth/authorize?')]).toEqual([303, true]);
  const refused = new URL(`${link.slice(0, link.lastIndexOf('/'))}/callback`);
  refused.search = String(
    new URLSearchParams({ error: 'access_denied', state: new URL(sent.location ?? '').searchParams.get('state') ?? '' }),
  );
  const page = await scanner.open(refused.href);
  expect([page.status, page.title]).toEqual([200, 'Nothing was shared']);
  expect(page.html).toContain(`href="${new URL(link).pathname}"`);
  expect(await harness.read('SELECT * FROM sync.accounts')).toEqual([]);
  expect((await enrol(link, 'ada')).title).toBe('Thank you');
  expect([
    (await scanner.open(link)).status,
    (await scanner.submit({ ...(await scanner.open(link)), url: link, html: `<form method="post" action="${link}">` })).title,
  ]).toEqual([404, 'This link cannot be used']);
});

test('a page that is loaded again at the end shows the same, and no code is used twice', async () => {
  const { harness, invite } = await openEnrolment(folder, 'again', shared);
  const browser = new Browser();
  const sent = await browser.submit(await browser.open(await invite('p01')));
  const callback = await fillIn(sent.location ?? '', 'ada');
  const [first, second] = await Promise.all([browser.open(callback), browser.open(callback)]);
  expect([first.title, second.html, (await browser.open(callback)).html]).toEqual(['Thank you', first.html, first.html]);
  expect(await harness.backfill({ from: '2025-01-01', to: '2025-01-02', collections: ['sleep_time'] })).toMatchObject({
    state: 'complete',
  });
});

test('an answer that another browser brings, or with another state, stores nothing', async () => {
  const { harness, invite, publicUrl } = await openEnrolment(folder, 'state', shared);
  const browser = new Browser();
  const sent = await browser.submit(await browser.open(await invite('p01')));
  const callback = await fillIn(sent.location ?? '', 'ada');
  const changed = new URL(callback);
  changed.searchParams.set('state', 'x'.repeat(43));
  const forged = new Browser();
  forged.cookies.set('ringneck_connect', { value: 'A'.repeat(600), path: '/connect' });
  const answers = [
    await new Browser().open(callback),
    await forged.open(callback),
    await browser.open(changed.href),
    await browser.open(`${publicUrl}/connect/callback`),
  ];
  expect(answers.map(({ status, title }) => [status, title])).toEqual(answers.map(() => [400, 'This sign-in was not begun here']));
  expect([harness.app.secrets.names(), await harness.read('SELECT * FROM sync.consents')]).toEqual([[], []]);
  expect((await browser.open(callback)).title).toBe('Thank you');
});

test('a person who has another account is not stored twice; the study is told, and the person is not alarmed', async () => {
  const { harness, invite, enrol, told, lines } = await openEnrolment(folder, 'twice', shared);
  await enrol(await invite('p01'), 'ada');
  const link = await invite('p02');
  const page = await enrol(link, 'ada');
  expect([page.status, page.title]).toEqual([200, 'You take part already']);
  expect(harness.app.secrets.names()).toEqual(['p01']);
  expect(await harness.read('SELECT user_id FROM sync.consents')).toEqual([['p01']]);
  const message = 'the person who signed in is already p01, and nothing was stored';
  expect(told).toEqual([{ reason: 'invitation_refused', user: 'p02', message }]);
  expect(lines.join('')).toContain(`an invitation was refused: ${message}`);
  expect((await harness.commands.status()).invitations).toMatchObject([{ user_id: 'p02', state: 'open', problem: message }]);
  // The first account goes on, and the link is for whoever it was meant for.
  expect(await harness.backfill({ from: '2025-01-01', to: '2025-01-02', collections: ['sleep_time'] })).toMatchObject({
    state: 'complete',
  });
  expect((await enrol(link, 'ben')).title).toBe('Thank you');
});

test('who signs in by the invitation of an account that was somebody else’s is refused, and both are told', async () => {
  const { harness, invite, enrol, told } = await openEnrolment(folder, 'another', shared);
  await enrol(await invite('p01'), 'ada');
  await harness.app.warehouse.record([
    {
      table: 'sync.accounts',
      key: { user_id: 'p01' },
      row: { service_user_id: 'somebody', state: 'parked', reason: 'sign in again: ringneck account login p01', since: 1 },
    },
  ]);
  const page = await enrol(await invite('p01'), 'ben');
  expect([page.status, page.title]).toEqual([409, 'Somebody else signed in']);
  expect(told).toEqual([
    { reason: 'invitation_refused', user: 'p01', message: 'somebody else signed in than p01 was before, and nothing was stored' },
  ]);
});

test('a link ends with its days, when it is revoked, and when the name gets another', async () => {
  let now = Date.parse('2026-03-01T12:00:00Z');
  const { harness, invite } = await openEnrolment(folder, 'ended', { ...shared, now: () => now });
  const browser = new Browser();
  const title = async (link: string) => (await browser.open(link)).title;
  const [first, second] = [await invite('p01', 1), await invite('p01', 2)];
  expect([await title(first), await title(second)]).toEqual(['This link cannot be used', 'The Night <Study>: share the data of your ring']);
  now += 2 * 86_400_000;
  expect(await title(second)).toBe('This link cannot be used');
  expect(await harness.commands.listInvitations()).toMatchObject([
    { user_id: 'p01', state: 'expired', expires_at: '2026-03-03T12:00:00.000Z' },
  ]);
  const third = await invite('p01');
  const sent = await browser.submit(await browser.open(third));
  expect(await harness.commands.revokeInvitation({ name: 'p01' })).toEqual({ user_id: 'p01', revoked: true });
  // Also for who has begun to sign in.
  expect((await browser.open(await fillIn(sent.location ?? '', 'ada'))).title).toBe('This link cannot be used');
  expect([await title(third), harness.app.secrets.names(), await harness.read('SELECT * FROM sync.consents')]).toEqual([
    'This link cannot be used',
    [],
    [],
  ]);
});

test('while the service gives no tokens nothing is stored, and the link stays', async () => {
  const { harness, invite, enrol, lines } = await openEnrolment(folder, 'away', { faults: { 'token-error': true } });
  const link = await invite('p01');
  const page = await enrol(link, 'ada');
  expect([page.status, page.title]).toEqual([503, 'That did not work']);
  expect([
    harness.app.secrets.names(),
    await harness.read('SELECT * FROM sync.consents'),
    await harness.read('SELECT kind FROM sync.links'),
  ]).toEqual([[], [], [['connect']]]);
  expect(lines.join('')).toContain('somebody invited could not be enrolled, and may try again');
  expect((await new Browser().open(link)).status).toBe(200);
});

test('what people agree to is what they have seen: a text that changed is shown again', async () => {
  const { invite, textFile, harness } = await openEnrolment(folder, 'text', shared);
  const browser = new Browser({ 'accept-language': 'de-CH, de;q=0.9, en;q=0.5' });
  const link = await invite('p01');
  const before = await browser.open(link);
  writeFileSync(textFile, '<script>alert(1)</script> We study naps & nights.');
  const again = await browser.submit(before);
  expect(again.status).toBe(200);
  expect(again.html).toContain('Was auf dieser Seite steht, hat sich geändert');
  expect(again.html).toContain('&lt;script&gt;alert(1)&lt;/script&gt; We study naps &amp; nights.');
  const sent = await browser.submit(again);
  const done = await browser.open(await fillIn(sent.location ?? '', 'ada'));
  expect([done.title, done.headers.get('content-language')]).toEqual(['Vielen Dank', 'de']);
  expect(await harness.read('SELECT language FROM sync.consents')).toEqual([['de']]);
});

test('behind a proxy that takes a path away every link and cookie has the path', async () => {
  const { invite, publicUrl } = await openEnrolment(folder, 'prefix', { ...shared, prefix: '/ring' });
  const link = await invite('p01');
  expect(link.startsWith(`${publicUrl}/connect/`)).toBe(true);
  const browser = new Browser();
  const page = await browser.open(link.replace('/ring/', '/'));
  expect(page.html).toContain(`action="${new URL(link).pathname}"`);
  const sent = await browser.open(link.replace('/ring/', '/'), {
    method: 'POST',
    body: new URLSearchParams({ seen: /name="seen" value="([^"]+)"/.exec(page.html)?.[1] ?? '' }),
  });
  expect(new URL(sent.location ?? '').searchParams.get('redirect_uri')).toBe(`${publicUrl}/connect/callback`);
  expect(sent.headers.get('set-cookie')).toMatch(/^ringneck_connect=[\w-]+; Max-Age=1800; HttpOnly; SameSite=Lax; Path=\/ring\/connect$/);
});

test('an invitation is for a name that is free, or for who has to sign in again', async () => {
  const { harness, invite, enrol } = await openEnrolment(folder, 'names', shared);
  await expect(invite('no name')).rejects.toThrow('"no name" cannot name an account');
  await enrol(await invite('p01'), 'ada');
  await expect(invite('p01')).rejects.toThrow(
    'p01 is active: an invitation is for a name that is free, or for an account that has to sign in again',
  );
  await harness.commands.pauseAccount({ name: 'p01' });
  await expect(invite('p01')).rejects.toThrow('p01 is paused and has not to sign in again: ringneck account resume p01');
  await expect(harness.commands.revokeInvitation({ name: 'p01' })).rejects.toThrow(
    'p01 has no invitation: ringneck account invitations shows those there are',
  );
});

const UNTOLD =
  'nobody can tell whether who signed in is the person whose data p01 has, and nothing was stored: they have to allow the scope personal';

test('who leaves out personal facts cannot be recognised: a new account is read, and nothing of one that was somebody’s changes', async () => {
  const { harness, invite, enrol, told } = await openEnrolment(folder, 'unrecognised', shared);
  await enrol(await invite('p01'), 'ada');
  const { secrets, warehouse } = harness.app;
  const signedIn = 'sign in again: ringneck account login p01';
  const parked = { table: 'sync.accounts', key: { user_id: 'p01' }, row: { state: 'parked', reason: signedIn, since: 1 } } as const;
  const [ada] = await harness.read(`SELECT service_user_id FROM sync.accounts WHERE user_id = 'p01'`);
  await warehouse.record([{ ...parked, row: { ...parked.row, service_user_id: String(ada?.[0]) } }]);
  const before = secrets.findSignIn('p01');
  const link = await invite('p01');
  const page = await enrol(link, 'ben', ['personal']);
  expect([page.status, page.title]).toEqual([409, 'You were not recognised']);
  expect(page.html).toContain(`href="${new URL(link).pathname}"`);
  expect((await enrol(await invite('p02'), 'ben', ['personal'])).title).toBe('Thank you');
  expect(secrets.findSignIn('p01')).toEqual(before);
  expect(await harness.read('SELECT user_id, service_user_id IS NULL, state, reason FROM sync.accounts ORDER BY ALL')).toEqual([
    ['p01', false, 'parked', signedIn],
    ['p02', true, 'active', null],
  ]);
  expect(await harness.read('SELECT user_id, scopes FROM sync.consents ORDER BY ALL')).toEqual([
    ['p01', ALL],
    ['p02', ALL.replace('personal ', '')],
  ]);
  expect(told).toEqual([{ reason: 'invitation_refused', user: 'p01', message: UNTOLD }]);
  expect(await harness.commands.listInvitations()).toMatchObject([{ user_id: 'p01', state: 'open', problem: UNTOLD }]);
  expect((await enrol(link, 'ada')).title).toBe('Thank you');
  expect(await harness.read(`SELECT state FROM sync.accounts WHERE user_id = 'p01'`)).toEqual([['active']]);
});

test('nobody gets rows by a link that may be of somebody else, until the operator says whose they are', async () => {
  const { harness, invite, enrol, told, sandbox } = await openEnrolment(folder, 'unknown-rows', shared);
  await enrol(await invite('p01'), 'ada', ['personal']);
  await harness.backfill({ from: '2025-01-01', to: '2025-01-05', collections: ['sleep_time'] });
  harness.app.secrets.remove('p01');
  const link = await invite('p01');
  expect((await enrol(link, 'ben', ['personal'])).title).toBe('You were not recognised');
  expect((await enrol(link, 'ada')).title).toBe('You were not recognised');
  const id = sandbox.people[0]?.user_id ?? '';
  const unknown = `nobody knows whose the data of p01 are, and nothing was stored of who signed in (${id} at the service): if they are the same, ringneck account map p01 ${id}, then the link again; if not, invite them by another name`;
  expect(told).toEqual([
    { reason: 'invitation_refused', user: 'p01', message: UNTOLD },
    { reason: 'invitation_refused', user: 'p01', message: unknown },
  ]);
  expect(await harness.commands.listInvitations()).toMatchObject([{ state: 'open', problem: unknown }]);
  expect([harness.app.secrets.names(), await harness.read('SELECT count(*)::INTEGER FROM sync.consents')]).toEqual([[], [[1]]]);
  await harness.commands.mapAccount({ name: 'p01', serviceUser: id });
  expect((await enrol(link, 'ben')).title).toBe('Somebody else signed in');
  expect((await enrol(link, 'ada')).title).toBe('Thank you');
});

test('an id of the service that a shell would take for more than a word is part of no command', async () => {
  const { harness, invite, enrol, told } = await openEnrolment(folder, 'odd-id', shared);
  await enrol(await invite('p01'), 'ada', ['personal']);
  await harness.backfill({ from: '2025-01-01', to: '2025-01-05', collections: ['sleep_time'] });
  harness.app.secrets.remove('p01');
  const client = await harness.app.client();
  client.personalInfo = async () => ({ id: 'x; touch owned', rest: {} }) as never;
  harness.app.client = async () => client;
  await enrol(await invite('p01'), 'ada');
  expect(told).toMatchObject([
    { message: expect.stringContaining('if they are the same, ringneck account map p01 <service_user_id>, then the link again') },
  ]);
});

test('nothing is stored of whom the service does not name in time, and the link stays', async () => {
  const { harness, invite, enrol, told } = await openEnrolment(folder, 'nameless', shared);
  await enrol(await invite('p01'), 'ada');
  const client = await harness.app.client();
  const { personalInfo } = client;
  let asked = 0;
  client.personalInfo = async (...given) => {
    if (++asked === 1) throw new RingneckError('the service does not answer');
    return personalInfo.apply(client, given);
  };
  harness.app.client = async () => client;
  const link = await invite('p02');
  expect((await enrol(link, 'ada')).title).toBe('That did not work');
  expect([harness.app.secrets.names(), await harness.read('SELECT user_id FROM sync.consents')]).toEqual([['p01'], [['p01']]]);
  expect((await enrol(link, 'ada')).title).toBe('You take part already');
  expect(told).toMatchObject([{ reason: 'invitation_refused', user: 'p02' }]);
});

test('where the service refuses to name who signs in the log has account and reason, and the person may try again', async () => {
  const { harness, invite, enrol, lines } = await openEnrolment(folder, 'refused-name', shared);
  const client = await harness.app.client();
  client.personalInfo = async () => {
    throw new ServiceError('invalid_request', '/v2/usercollection/personal_info', 'answered 400');
  };
  const page = await enrol(await invite('p01'), 'ada');
  expect([page.status, page.html.includes('/connect/'), harness.app.secrets.names()]).toEqual([503, true, []]);
  expect(lines.map(line => JSON.parse(line))).toContainEqual(
    expect.objectContaining({
      account: 'p01',
      reason: 'GET /v2/usercollection/personal_info: answered 400',
      msg: 'somebody invited could not be enrolled, and may try again',
    }),
  );
});

test('where the account cannot be recorded nothing of it stays, and who tries again agrees once', async () => {
  const { harness, invite, enrol, sandbox } = await openEnrolment(folder, 'disk', shared);
  const { warehouse, secrets } = harness.app;
  const { record } = warehouse;
  const link = await invite('p01');
  let token: string | undefined;
  warehouse.record = async entries => {
    if (!entries.some(({ table }) => table === 'sync.accounts')) return record.call(warehouse, entries);
    token = secrets.find('p01');
    throw new Error('ENOSPC');
  };
  expect((await enrol(link, 'ada')).status).toBe(500);
  warehouse.record = record;
  expect([secrets.names(), await harness.read('SELECT * FROM sync.consents'), await harness.read('SELECT kind FROM sync.links')]).toEqual([
    [],
    [],
    [['connect']],
  ]);
  const asked = await fetch(`${sandbox.url}/v2/usercollection/personal_info`, { headers: { authorization: `Bearer ${token}` } });
  expect(asked.status).toBe(401);
  expect((await enrol(link, 'ada')).title).toBe('Thank you');
  expect(await harness.read('SELECT user_id, withdrawn_at FROM sync.consents')).toEqual([['p01', null]]);
  expect(await harness.read('SELECT kind FROM sync.links')).toEqual([['withdraw']]);
});

test('a process that ends once the account is stored says so', async () => {
  const { harness, invite, lines } = await openEnrolment(folder, 'ending', shared);
  const browser = new Browser();
  const sent = await browser.submit(await browser.open(await invite('p01')));
  const callback = await fillIn(sent.location ?? '', 'ada');
  const { client } = harness.app;
  let asked = 0;
  harness.app.client = async () => {
    if (++asked === 1) return client.call(harness.app);
    throw new TryLaterError('ringneck is being ended');
  };
  const page = await browser.open(callback);
  expect([page.status, page.title]).toEqual([200, 'Thank you']);
  expect((await browser.open(callback)).html).toBe(page.html);
  expect(lines.join('')).toContain('somebody invited has signed in, and the service was not asked further');
  expect(await harness.read('SELECT user_id, state FROM sync.accounts')).toEqual([['p01', 'active']]);
  expect((await new Browser().open(withdrawLinkOf(page))).title).toBe('Withdraw from The Night <Study>');
});

test('one person who signs in by two invitations at once has one account', async () => {
  const { harness, invite, enrol } = await openEnrolment(folder, 'at-once', shared);
  const links = [await invite('p01'), await invite('p02')];
  const titles = (await Promise.all(links.map(link => enrol(link, 'ada')))).map(({ title }) => title);
  expect(titles.toSorted()).toEqual(['Thank you', 'You take part already']);
  const [user] = harness.app.secrets.names();
  expect(await harness.read('SELECT user_id, state FROM sync.accounts')).toEqual([[user, 'active']]);
  expect(await harness.read('SELECT user_id FROM sync.consents')).toEqual([[user]]);
});

test('where the service does not let a person in the study is told its words once, and the person is not blamed', async () => {
  const { harness, invite, told, lines, publicUrl } = await openEnrolment(folder, 'full', shared);
  const link = await invite('p01');
  const browser = new Browser();
  let sent = await browser.open(link);
  for (const error of ['access_denied&error_description=the+limit+of+people%0Ais+reached', 'invalid_scope']) {
    sent = await browser.submit(await browser.open(link));
    const state = new URL(sent.location ?? '').searchParams.get('state') ?? '';
    for (let times = 0; times < 2; times++) {
      const page = await browser.open(`${publicUrl}/connect/callback?error=${error}&state=${state}`);
      expect([page.status, page.title]).toEqual([200, 'You were not let in']);
      expect(page.html).toContain(`href="${new URL(link).pathname}"`);
    }
  }
  expect(told).toMatchObject([
    {
      reason: 'invitation_refused',
      user: 'p01',
      message: expect.stringMatching(
        /^the service did not let the person sign in \(it says: access_denied: the limit of people.+is reached\)/,
      ),
    },
    { message: 'the service did not let the person sign in (it says: invalid_scope), and nothing was stored' },
  ]);
  expect(lines.join('')).toContain('an invitation was refused: the service did not let the person sign in (it says: invalid_scope)');
  expect(harness.app.secrets.names()).toEqual([]);
  // Who goes back there and is let in after all is enrolled.
  expect((await browser.open(await fillIn(sent.location ?? '', 'ada'))).title).toBe('Thank you');
});

test('while the study’s text is away the log names the setting and the file, and doctor warns', async () => {
  const { harness, invite, textFile, lines } = await openEnrolment(folder, 'away-text', shared);
  const link = await invite('p01');
  renameSync(textFile, `${textFile}.away`);
  const browser = new Browser();
  const page = await browser.open(link);
  expect([page.status, page.title]).toEqual([503, 'This invitation cannot be shown now']);
  expect((await browser.open(link, { method: 'POST' })).title).toBe('This invitation cannot be shown now');
  const reason = `RINGNECK_STUDY_TEXT cannot be read: ENOENT: no such file or directory, stat '${textFile}'`;
  expect(lines.map(line => JSON.parse(line)).find(({ level }) => level === 50)).toMatchObject({
    ...{
      reason,
      msg: 'nobody who opens an invitation can agree: the text of the study cannot be shown. Put the file right; up need not be started again',
    },
  });
  expect(lines.join('')).not.toContain(link.split('/').at(-1));
  expect(checkSettings(harness.app.settings)).toContainEqual(expect.objectContaining({ state: 'warn', message: reason }));
  renameSync(`${textFile}.away`, textFile);
  expect((await new Browser().open(link)).status).toBe(200);
});

test('the operator makes another link to withdraw, and both are good', async () => {
  const { harness, invite, enrol } = await openEnrolment(folder, 'another-withdrawal', shared);
  const first = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const { url } = await harness.commands.makeWithdrawalLink({ name: 'p01' });
  const browser = new Browser();
  expect((await browser.open(first)).title).toBe('Withdraw from The Night <Study>');
  expect((await browser.submit(await browser.open(url))).title).toBe('You have withdrawn');
  expect((await browser.open(first)).title).toBe('You have withdrawn');
  await expect(harness.commands.makeWithdrawalLink({ name: 'nobody' })).rejects.toThrow('no account "nobody"');
});

test('what the service does not say was granted is in no consent, and the page says what was asked for', async () => {
  const { harness, invite } = await openEnrolment(folder, 'untold', shared);
  const exchange = OAuthClient.prototype.exchange;
  const spy = vi.spyOn(OAuthClient.prototype, 'exchange').mockImplementation(async function (this: OAuthClient, answer) {
    return { ...(await exchange.call(this, answer)), scopes: undefined };
  });
  onTestFinished(() => spy.mockRestore());
  const browser = new Browser();
  const sent = await browser.submit(await browser.open(await invite('p01')));
  const page = await browser.open(await fillIn(sent.location ?? '', 'ada', ['heartrate']));
  expect(page.title).toBe('Thank you');
  expect(page.html).not.toContain('You have allowed');
  expect(page.html).toContain('<h2>You were asked for</h2>');
  expect(page.html).toContain('has not told which of these you allowed');
  expect(await harness.read('SELECT user_id, scopes, withdrawn_at FROM sync.consents')).toEqual([['p01', null, null]]);
});

test('words that a person has written into the address are in no consent and on no page', async () => {
  const { harness, invite } = await openEnrolment(folder, 'edited', shared);
  const ask = vi.spyOn(globalThis, 'fetch').mockImplementation(async (url, init) => {
    const answer = await originalFetch(url, init);
    if (!String(url).endsWith('/oauth/token')) return answer;
    const { scope: _, ...rest } = JSON.parse(await answer.text());
    return Response.json(rest, { status: answer.status });
  });
  onTestFinished(() => ask.mockRestore());
  const browser = new Browser();
  const sent = await browser.submit(await browser.open(await invite('p01')));
  const back = new URL(await fillIn(sent.location ?? '', 'ada'));
  back.searchParams.set('scope', '=HYPERLINK("http://evil") daily personal <script>alert(1)</script>');
  const page = await browser.open(back.href);
  expect([page.title, page.html.includes('HYPERLINK')]).toEqual(['Thank you', false]);
  expect(await harness.read('SELECT scopes FROM sync.consents')).toEqual([['daily personal']]);
});

test('codes that somebody makes up reach the service ten times an hour, and no other link is held up', async () => {
  let now = Date.parse('2026-03-01T12:00:00Z');
  const { invite, enrol, lines, publicUrl } = await openEnrolment(folder, 'made-up', { ...shared, now: () => now });
  const exchange = vi.spyOn(OAuthClient.prototype, 'exchange');
  onTestFinished(() => exchange.mockRestore());
  const link = await invite('p01');
  const browser = new Browser();
  const page = await browser.open(link);
  const tryOnce = async (query: string) => {
    const sent = await browser.submit(page);
    const state = new URL(sent.location ?? '').searchParams.get('state');
    return (await browser.open(`${publicUrl}/connect/callback?${query}&state=${state}`)).title;
  };
  for (let n = 0; n < 12; n++) expect(await tryOnce(`code=x${n}`)).toBe('That did not work');
  const failed = () => lines.filter(line => line.includes('somebody invited could not be enrolled')).length;
  expect([exchange.mock.calls.length, failed()]).toEqual([10, 10]);
  expect(lines.filter(line => line.includes('has refused 10 codes of one invitation'))).toHaveLength(1);
  expect((await enrol(await invite('p02'), 'ben')).title).toBe('Thank you');
  now += 3_600_000;
  expect((await enrol(link, 'ada')).title).toBe('Thank you');
});

test('while the service is away nobody uses up the tries of a link', async () => {
  const { invite, enrol } = await openEnrolment(folder, 'outage', shared);
  const link = await invite('p01');
  const exchange = vi.spyOn(OAuthClient.prototype, 'exchange').mockRejectedValue(new SignInError('unavailable', 'the service is away'));
  onTestFinished(() => exchange.mockRestore());
  for (let n = 0; n < 12; n++) expect((await enrol(link, 'ada')).title).toBe('That did not work');
  expect(exchange.mock.calls).toHaveLength(12);
  exchange.mockRestore();
  expect((await enrol(link, 'ada')).title).toBe('Thank you');
});

test('a HEAD of a link says what its GET says, and uses nothing up', async () => {
  const { invite, enrol, publicUrl, harness } = await openEnrolment(folder, 'head', shared);
  const link = await invite('p01');
  const head = async (url: string, init: RequestInit = {}) => {
    const answer = await fetch(url, { method: 'HEAD', ...init });
    return [answer.status, answer.headers.get('content-type'), await answer.text()];
  };
  const html = 'text/html; charset=utf-8';
  expect(await head(link)).toEqual([200, html, '']);
  const browser = new Browser();
  const sent = await browser.submit(await browser.open(link));
  const back = await fillIn(sent.location ?? '', 'ada');
  const cookie = [...browser.cookies].map(([name, { value }]) => `${name}=${value}`).join('; ');
  expect(await head(back, { headers: { cookie } })).toEqual([404, html, '']);
  expect(harness.app.secrets.names()).toEqual([]);
  const page = await browser.open(back);
  expect(page.title).toBe('Thank you');
  expect(await head(withdrawLinkOf(page))).toEqual([200, html, '']);
  expect(await head(link)).toEqual([404, html, '']);
  expect(await head(`${publicUrl}/connect/${'x'.repeat(43)}`)).toEqual([404, html, '']);
  expect(await harness.read('SELECT user_id, state FROM sync.accounts')).toEqual([['p01', 'active']]);
  expect((await enrol(await invite('p02'), 'ben')).title).toBe('Thank you');
});

test('the study is told ten times an hour that by one link somebody was not let in', async () => {
  const { invite, told, lines, publicUrl } = await openEnrolment(folder, 'not-admitted', shared);
  const browser = new Browser();
  const page = await browser.open(await invite('p01'));
  for (let n = 0; n < 12; n++) {
    const state = new URL((await browser.submit(page)).location ?? '').searchParams.get('state');
    expect((await browser.open(`${publicUrl}/connect/callback?error=x${n}&state=${state}`)).title).toBe('You were not let in');
  }
  expect([told.length, lines.filter(line => line.includes('an invitation was refused')).length]).toEqual([10, 10]);
});

test('a name that is given to another person takes the link to withdraw from who had it before', async () => {
  const { harness, invite, enrol } = await openEnrolment(folder, 'reused', shared);
  const first = withdrawLinkOf(await enrol(await invite('p01'), 'ada', ['personal']));
  await harness.commands.removeAccount({ name: 'p01' });
  expect((await new Browser().open(first)).title).toBe('Your data are not read any more');
  const second = withdrawLinkOf(await enrol(await invite('p01'), 'ben'));
  const pressed = await new Browser().open(first, { method: 'POST' });
  expect([pressed.status, pressed.title]).toEqual([404, 'This link cannot be used']);
  expect(await harness.read('SELECT user_id, state FROM sync.accounts')).toEqual([['p01', 'active']]);
  expect((await new Browser().open(second)).title).toBe('Withdraw from The Night <Study>');
});

test.each([
  ['account remove', 'removeAccount'],
  ['account invite --revoke', 'revokeInvitation'],
] as const)(
  'tokens of a sign-in that was killed before its account was stored are told by doctor, and %s takes them back',
  async (_, command) => {
    const { harness, invite, sandbox } = await openEnrolment(folder, `killed-${command}`, shared);
    const { warehouse, secrets, settings } = harness.app;
    const { record } = warehouse;
    let stop = () => {};
    const kept = new Promise<void>(resolve => {
      stop = resolve;
    });
    // As a kill leaves the disk: the tokens are there, and nothing after them.
    warehouse.record = entries => {
      if (!entries.some(({ table }) => table === 'sync.accounts')) return record.call(warehouse, entries);
      stop();
      return new Promise((_, reject) => {
        die = () => reject(new Error('killed'));
      });
    };
    let die = () => {};
    onTestFinished(() => die());
    const browser = new Browser();
    const sent = await browser.submit(await browser.open(await invite('p01')));
    void browser.open(await fillIn(sent.location ?? '', 'ada')).catch(() => undefined);
    await kept;
    const token = secrets.find('p01') ?? '';
    const data = `${settings.data}-after`;
    cpSync(settings.data, data, { recursive: true });
    const after = await openHarness(data, sandbox.url, { settings: { ...settings, data } });
    const said = async () =>
      (await after.commands.check({}))
        .map(({ message }) => message)
        .filter(message => message.includes('is no account: a sign-in was interrupted'));
    expect(await said()).toEqual([expect.stringMatching(/^p01 has a token/)]);
    await after.commands[command]({ name: 'p01' });
    expect([after.app.secrets.names(), await said()]).toEqual([[], []]);
    expect(await after.commands.listInvitations({})).toEqual([]);
    const asked = await fetch(`${sandbox.url}/v2/usercollection/personal_info`, { headers: { authorization: `Bearer ${token}` } });
    expect(asked.status).toBe(401);
  },
);

test('with a key that is damaged nobody invited has their code exchanged, and the log says what to do', async () => {
  const { harness, invite, enrol, lines } = await openEnrolment(folder, 'damaged-key', shared);
  const [first, second] = [await invite('p01'), await invite('p02')];
  expect((await enrol(first, 'ada')).title).toBe('Thank you');
  const path = join(harness.app.settings.data, 'secret.key');
  const key = readFileSync(path);
  writeFileSync(path, 'short');
  const exchange = vi.spyOn(OAuthClient.prototype, 'exchange');
  onTestFinished(() => exchange.mockRestore());
  expect((await enrol(second, 'ben')).title).toBe('That did not work');
  expect(exchange).not.toHaveBeenCalled();
  expect(lines.filter(line => line.includes(`${path} is damaged (fewer than 16 characters): restore it from a copy`))).toHaveLength(1);
  writeFileSync(path, key);
  expect((await enrol(second, 'ben')).title).toBe('Thank you');
});

test('an invited person whose code is answered with the tokens of another account is not stored, and may try again', async () => {
  const { harness, invite, enrol, lines } = await openEnrolment(folder, 'cached', shared);
  await enrol(await invite('p01'), 'ada', ['personal']);
  const { accessToken, refreshToken } = harness.app.secrets.findSignIn('p01')!;
  const answer = { accessToken, refreshToken: refreshToken ?? undefined, expiresIn: 3_600, scopes: ['daily'] };
  const exchange = vi.spyOn(OAuthClient.prototype, 'exchange').mockResolvedValueOnce(answer);
  onTestFinished(() => exchange.mockRestore());
  const link = await invite('p02');
  const page = await enrol(link, 'ben', ['personal']);
  expect([page.title, harness.app.secrets.names()]).toEqual(['That did not work', ['p01']]);
  expect(lines.join('')).toContain('the service answered with the tokens of p01, and nothing was stored');
  expect((await enrol(link, 'ben', ['personal'])).title).toBe('Thank you');
});
