import fs, { readFileSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { DataFolder } from '../../../src/app/data-folder.ts';
import { checkSignIns } from '../../../src/app/doctor/sign-ins.ts';
import { finishDaily, finishWithdrawals } from '../../../src/app/enrolment/withdrawal.ts';
import { eraseAccount } from '../../../src/app/erase/erase.ts';
import { runUp } from '../../../src/app/up.ts';
import { RingneckError } from '../../../src/base/errors.ts';
import { createLog } from '../../../src/base/log.ts';
import { Secrets } from '../../../src/base/secrets/secrets.ts';
import type { SignIn } from '../../../src/base/secrets/sign-in.ts';
import { linesOf } from '../../../src/cli/terminal/erase-report.ts';
import { changeAccounts, getAccount, setAccountState } from '../../../src/ledger/accounts.ts';
import { ANOTHER_PERSON, twinOf } from '../../../src/ledger/unproven.ts';
import { SignInError } from '../../../src/sign-in/error.ts';
import { createAuthorizeRequest, OAuthClient } from '../../../src/sign-in/oauth.ts';
import { Browser, type EnrolmentHarness, openEnrolment, sharePlace, withdrawLinkOf } from '../../support/enrolment-harness.ts';
import { openHarness } from '../../support/harness.ts';
import { fillIn } from '../../support/sandbox-page.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';

const folder = tempFolder();
const shared = sharePlace(folder);
const TOKENS_LEFT = 'the tokens of a person who has withdrawn could not be forgotten or taken back: it is tried again each day';
const errorsIn = (lines: string[]) => lines.map(line => JSON.parse(line)).filter(({ level }) => level === 50);
const DAYS = { from: '2025-01-01', to: '2025-01-05', collections: ['sleep_time'] };

test('who withdraws is not read any more, the tokens are taken back, the study is told, and the rows stay', async () => {
  const { harness, invite, enrol, sandbox, told } = await openEnrolment(folder, 'whole', shared);
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  await enrol(await invite('p02'), 'ben');
  await harness.backfill(DAYS);
  const rows = await harness.read(`SELECT count(*) FROM sleep_time WHERE user_id = 'p01'`);
  const token = harness.app.secrets.find('p01') ?? '';
  const asks = async () =>
    (await fetch(`${sandbox.url}/v2/usercollection/personal_info`, { headers: { authorization: `Bearer ${token}` } })).status;
  expect(await asks()).toBe(200);

  const browser = new Browser();
  const page = await browser.open(link);
  expect([page.status, page.title, await asks()]).toEqual([200, 'Withdraw from The Night <Study>', 200]);
  const done = await browser.submit(page);
  expect([done.status, done.title, await asks()]).toEqual([200, 'You have withdrawn', 401]);
  const reason = 'withdrawn by the person; its rows stay until: ringneck account remove p01 --erase';
  expect(await harness.read('SELECT user_id, state, reason FROM sync.accounts ORDER BY ALL')).toEqual([
    ['p01', 'paused', reason],
    ['p02', 'active', null],
  ]);
  expect(harness.app.secrets.names()).toEqual(['p02']);
  expect(told).toEqual([{ reason: 'consent_withdrawn', user: 'p01', message: reason }]);
  expect(await harness.read('SELECT user_id, withdrawn_at IS NOT NULL FROM sync.consents ORDER BY ALL')).toEqual([
    ['p01', true],
    ['p02', false],
  ]);
  expect(await harness.read(`SELECT count(*) FROM sleep_time WHERE user_id = 'p01'`)).toEqual(rows);
  expect(rows).toEqual([[6]]);
  // A second time says the same, and tells nobody.
  expect([(await browser.open(link)).title, (await browser.open(link, { method: 'POST' })).title, told.length]).toEqual([
    'You have withdrawn',
    'You have withdrawn',
    1,
  ]);
  expect((await harness.commands.why({ name: 'p01' })).sentences[0]).toContain(`not read (${reason}).`);
});

test('a service that is away does not keep anybody from withdrawing, and the person is told', async () => {
  const { harness, invite, enrol, sandbox } = await openEnrolment(folder, 'away');
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  await sandbox.close();
  const browser = new Browser();
  const done = await browser.submit(await browser.open(link));
  expect(done.title).toBe('You have withdrawn');
  expect(done.html).toContain('still lists the access');
  expect(harness.app.secrets.names()).toEqual([]);
});

test('while the disk is too full for anything else people withdraw, are paused and are removed', async () => {
  const { harness, invite, enrol, told } = await openEnrolment(folder, 'full', shared);
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  await enrol(await invite('p02'), 'ben');
  vi.spyOn(fs, 'statfsSync').mockReturnValue({ ...fs.statfsSync(folder), bavail: 400, bsize: 1_048_576 });
  syncBuiltinESMExports();
  onTestFinished(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });
  const { commands, app, read } = harness;
  await expect(commands.resumeAccounts({ names: ['p02'] })).rejects.toThrow('is almost full');
  const browser = new Browser();
  expect((await browser.submit(await browser.open(link))).title).toBe('You have withdrawn');
  expect([app.secrets.names(), told]).toMatchObject([['p02'], [{ reason: 'consent_withdrawn', user: 'p01' }]]);
  await commands.pauseAccount({ name: 'p02' });
  const states = () => read('SELECT user_id, state FROM sync.accounts ORDER BY ALL');
  expect(await states()).toEqual([
    ['p01', 'paused'],
    ['p02', 'paused'],
  ]);
  await commands.removeAccount({ name: 'p02' });
  expect([await states(), app.secrets.names()]).toEqual([
    [
      ['p01', 'paused'],
      ['p02', 'removed'],
    ],
    [],
  ]);
  expect(await read('SELECT count(*) FROM sync.consents WHERE withdrawn_at IS NULL')).toEqual([[0]]);
});

test('who withdrew may come back by another invitation, and withdraw again by either link', async () => {
  const { harness, invite, enrol } = await openEnrolment(folder, 'back', shared);
  const browser = new Browser();
  const first = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  await browser.submit(await browser.open(first));
  expect((await enrol(await invite('p01'), 'ada')).title).toBe('Thank you');
  expect(await harness.read('SELECT state, reason FROM sync.accounts')).toEqual([['active', null]]);
  expect(await harness.read('SELECT withdrawn_at IS NULL FROM sync.consents ORDER BY "at"')).toEqual([[false], [true]]);
  expect((await browser.submit(await browser.open(first))).title).toBe('You have withdrawn');
  expect(await harness.read('SELECT state FROM sync.accounts')).toEqual([['paused']]);
});

/** As `account login` does it, with the address that the sandbox knows. */
async function login({ harness, publicUrl }: EnrolmentHarness, name: string, person: string, unticked: string[] = []) {
  const { signIn } = harness.app.settings;
  if (!signIn) throw new Error('no client');
  const redirectUrl = `${publicUrl}/connect/callback`;
  const { url, verifier } = await createAuthorizeRequest({ ...signIn, redirectUrl });
  const answer = new URL(await fillIn(url, person, unticked)).searchParams;
  const scope = answer.get('scope') ?? undefined;
  return harness.commands.finishLogin({ name, code: answer.get('code') ?? '', verifier, redirectUrl, scope });
}

test('a sign-in of nobody knows whom leaves who has withdrawn as they are, with nothing stored', async () => {
  const enrolment = await openEnrolment(folder, 'unknown-login', shared);
  const { harness, invite, enrol, sandbox } = enrolment;
  const browser = new Browser();
  await browser.submit(await browser.open(withdrawLinkOf(await enrol(await invite('p01'), 'ada'))));
  await expect(login(enrolment, 'p01', 'ben', ['personal'])).rejects.toThrow(
    'and the person of p01 has withdrawn: nothing was stored. Try again later, and allow the scope personal: ringneck account login p01',
  );
  const reason = 'withdrawn by the person; its rows stay until: ringneck account remove p01 --erase';
  expect(await harness.read('SELECT user_id, state, reason FROM sync.accounts')).toEqual([['p01', 'paused', reason]]);
  expect(harness.app.secrets.names()).toEqual([]);
  const token = sandbox.people[0]?.token ?? '';
  await expect(harness.commands.addAccount({ name: 'p01', token })).rejects.toThrow('withdrawn');
});

test('who withdrew and was signed in again by the study can withdraw by the same link', async () => {
  const enrolment = await openEnrolment(folder, 'back-by-login', shared);
  const { harness, invite, enrol, told } = enrolment;
  const browser = new Browser();
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  await browser.submit(await browser.open(link));
  expect(await login(enrolment, 'p01', 'ada')).toMatchObject({ state: 'active', reason: null });
  const page = await browser.open(link);
  expect(page.title).toBe('Withdraw from The Night <Study>');
  expect((await browser.submit(page)).title).toBe('You have withdrawn');
  expect([await harness.read('SELECT state FROM sync.accounts'), harness.app.secrets.names(), told.length]).toEqual([[['paused']], [], 2]);
});

test('a sign-in that is made while a withdrawal waits for the service stays', async () => {
  const enrolment = await openEnrolment(folder, 'crossed', shared);
  const { harness, invite, enrol } = enrolment;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  let answer: () => void = () => undefined;
  const answered = new Promise<void>(resolve => {
    answer = resolve;
  });
  const revoke = vi.spyOn(OAuthClient.prototype, 'revoke').mockImplementation(() => answered);
  onTestFinished(() => revoke.mockRestore());
  const withdrawing = new Browser().open(link, { method: 'POST' });
  await until('the service is asked', () => revoke.mock.calls.length > 0);
  expect([await harness.read('SELECT state FROM sync.accounts'), harness.app.secrets.names()]).toEqual([[['paused']], []]);
  await login(enrolment, 'p01', 'ada');
  answer();
  expect((await withdrawing).title).toBe('You have withdrawn');
  expect([await harness.read('SELECT state FROM sync.accounts'), harness.app.secrets.names()]).toEqual([[['active']], ['p01']]);
});

/** A promise that is settled by hand. */
function gate(): { opened: Promise<void>; open(): void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>(resolve => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** Has the next code wait to be exchanged, until the gate is opened. */
function holdExchange(): { isAsked: () => boolean; open(): void } {
  const { opened, open } = gate();
  const { exchange } = OAuthClient.prototype;
  const spy = vi.spyOn(OAuthClient.prototype, 'exchange').mockImplementationOnce(async function (this: OAuthClient, answer) {
    await opened;
    return exchange.call(this, answer);
  });
  onTestFinished(() => spy.mockRestore());
  return { isAsked: () => spy.mock.calls.length > 0, open };
}

test.each(['by a link', 'by account login'])('who withdraws while their code is exchanged, once more, is not read: %s', async how => {
  const enrolment = await openEnrolment(folder, `exchanged-${how.length}`, shared);
  const { harness, invite, enrol, lines } = enrolment;
  const browser = new Browser();
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  await browser.submit(await browser.open(link));
  const held = holdExchange();
  const revoke = vi.spyOn(OAuthClient.prototype, 'revoke');
  onTestFinished(() => revoke.mockRestore());
  const isByLink = how === 'by a link';
  const coming = isByLink
    ? enrol(await invite('p01'), 'ada').then(({ title }) => title)
    : login(enrolment, 'p01', 'ada').catch(error => error.message);
  await until('the code is exchanged', held.isAsked);
  expect((await browser.open(link, { method: 'POST' })).title).toBe('You have withdrawn');
  held.open();
  const said = 'the person of p01 has withdrawn while they signed in, and nothing was stored';
  expect(await coming).toContain(isByLink ? 'That did not work' : said);
  if (isByLink) expect(lines.some(line => line.includes(said))).toBe(true);
  expect([await harness.read('SELECT state FROM sync.accounts'), harness.app.secrets.names()]).toEqual([[['paused']], []]);
  expect([revoke.mock.calls.length, harness.app.secrets.listEnded()]).toEqual([1, []]);
});

test('who withdraws while their account is about to get another name is not told that the service has taken the access back', async () => {
  const enrolment = await openEnrolment(folder, 'moved-meanwhile', shared);
  const { harness, invite, enrol } = enrolment;
  const { app } = harness;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const [first, second] = [gate(), gate()];
  const changed = changeAccounts(app.warehouse, () => first.opened);
  void app.inHand.add(second.opened);
  const withdrawing = new Browser().open(link, { method: 'POST' });
  const moving = harness.commands.moveAccount({ from: 'p01', to: 'p09' });
  await until('the folder is being closed', () => app.ending.aborted);
  first.open();
  await changed;
  await until('it is recorded', () => !app.secrets.names().includes('p01'));
  second.open();
  await moving;
  const page = await withdrawing;
  expect(app.secrets.listEnded()).toMatchObject([{ name: 'p09', isGivenUp: false }]);
  expect([page.title, page.html.includes('still lists the access')]).toEqual(['You have withdrawn', true]);
});

/** Presses the button of a link, and fails as the tokens are to be forgotten. */
async function interrupt({ harness }: EnrolmentHarness, link: string) {
  const { secrets } = harness.app;
  const end = vi.spyOn(secrets, 'end').mockImplementation(() => {
    throw new Error('killed');
  });
  const page = await new Browser().open(link, { method: 'POST' });
  end.mockRestore();
  expect([await harness.read('SELECT state FROM sync.accounts'), secrets.names()]).toEqual([[['paused']], ['p01']]);
  return page;
}

test('a withdrawal that was interrupted before the tokens were forgotten is done by the link, and the study is told, again where it may not have been', async () => {
  const enrolment = await openEnrolment(folder, 'interrupted', shared);
  const { harness, invite, enrol, told } = enrolment;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const page = await interrupt(enrolment, link);
  expect(told).toHaveLength(1);
  expect([page.status, page.title, page.html.includes('still lists the access')]).toEqual([200, 'You have withdrawn', true]);
  const browser = new Browser();
  expect((await browser.submit(await browser.open(link))).title).toBe('You have withdrawn');
  await browser.open(link, { method: 'POST' });
  await finishWithdrawals(harness.app);
  expect([harness.app.secrets.names(), told]).toEqual([
    [],
    [
      {
        reason: 'consent_withdrawn',
        user: 'p01',
        message: 'withdrawn by the person; its rows stay until: ringneck account remove p01 --erase',
      },
      {
        reason: 'consent_withdrawn',
        user: 'p01',
        message: 'withdrawn by the person; its rows stay until: ringneck account remove p01 --erase (this may have been told before)',
        isRepeat: true,
      },
    ],
  ]);
});

test('a file of tokens that cannot be read keeps nobody from withdrawing, and the tokens are taken back once it is there again', async () => {
  const enrolment = await openEnrolment(folder, 'damaged-file', shared);
  const { harness, invite, enrol, told, lines } = enrolment;
  const { secrets, settings } = harness.app;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const token = secrets.find('p01') ?? '';
  const path = join(settings.data, 'accounts.secret');
  const whole = readFileSync(path);
  writeFileSync(path, whole.subarray(0, 100));
  const browser = new Browser();
  const page = await browser.submit(await browser.open(link));
  expect([page.status, page.title, page.html.includes('still lists the access')]).toEqual([200, 'You have withdrawn', true]);
  const reason = 'withdrawn by the person; its rows stay until: ringneck account remove p01 --erase';
  expect(await harness.read('SELECT state, reason FROM sync.accounts')).toEqual([['paused', reason]]);
  expect(await harness.read('SELECT withdrawn_at IS NOT NULL FROM sync.consents')).toEqual([[true]]);
  expect(told).toEqual([{ reason: 'consent_withdrawn', user: 'p01', message: reason }]);
  expect(errorsIn(lines)).toMatchObject([{ account: 'p01', reason: expect.stringContaining(`${path} cannot be read`), msg: TOKENS_LEFT }]);
  expect((await browser.open(link, { method: 'POST' })).html).toContain('still lists the access');
  expect(told).toHaveLength(1);

  writeFileSync(path, whole);
  expect(await askWith(enrolment, token)).toBe(200);
  await finishWithdrawals(harness.app);
  expect([await askWith(enrolment, token), secrets.names(), secrets.listEnded()]).toEqual([401, [], []]);
  expect((await browser.open(link)).html).not.toContain('still lists the access');
});

test('tokens of somebody else that could not be ended by a withdrawal are not taken back later either', async () => {
  const enrolment = await openEnrolment(folder, 'damaged-others', shared);
  const { harness, invite, enrol } = enrolment;
  const { secrets, settings, warehouse } = harness.app;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const token = secrets.find('p01') ?? '';
  await changeAccounts(warehouse, async () => setAccountState(warehouse, await getAccount(warehouse, 'p01'), 'parked', ANOTHER_PERSON));
  const path = join(settings.data, 'accounts.secret');
  const whole = readFileSync(path);
  writeFileSync(path, '{');
  expect((await new Browser().open(link, { method: 'POST' })).title).toBe('You have withdrawn');
  writeFileSync(path, whole);
  await finishWithdrawals(harness.app);
  expect([await askWith(enrolment, token), secrets.names(), secrets.listEnded()]).toMatchObject([
    200,
    [],
    [{ name: 'p01', isGivenUp: true }],
  ]);
});

test('a withdrawal that cannot be recorded is an error that names the account and why', async () => {
  const { harness, invite, enrol, lines } = await openEnrolment(folder, 'unrecorded', shared);
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const record = vi.spyOn(harness.app.warehouse, 'record').mockRejectedValue(new RingneckError('the disk is full'));
  const page = await new Browser().open(link, { method: 'POST' });
  record.mockRestore();
  expect([page.status, page.html.includes('Nothing was stored'), page.html.includes('may not be complete')]).toEqual([500, false, true]);
  expect(errorsIn(lines)).toMatchObject([
    { reason: 'the withdrawal of p01 could not be recorded: the disk is full. It takes the link again.' },
  ]);
});

test('up does at its start what is left of a withdrawal, and takes the tokens back', async () => {
  const enrolment = await openEnrolment(folder, 'finished', shared);
  const { harness, invite, enrol, sandbox } = enrolment;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const token = harness.app.secrets.find('p01') ?? '';
  await interrupt(enrolment, link);
  const { settings } = harness.app;
  await harness.close();
  const stop = new AbortController();
  const lines: string[] = [];
  const log = createLog({
    level: 'info',
    pretty: false,
    stream: {
      write: line => {
        lines.push(line);
        if (line.includes('"msg":"up"')) stop.abort();
      },
    },
  });
  await runUp({ settings: { ...settings, port: 0 }, log }, stop.signal);
  expect(lines.filter(line => line.includes('a person has withdrawn: the account is paused'))).toHaveLength(1);
  expect(harness.app.secrets.names()).toEqual([]);
  const asked = await fetch(`${sandbox.url}/v2/usercollection/personal_info`, { headers: { authorization: `Bearer ${token}` } });
  expect(asked.status).toBe(401);
});

test('one withdrawal that cannot be finished keeps nobody else from being finished', async () => {
  const enrolment = await openEnrolment(folder, 'unfinished', shared);
  const { harness, invite, enrol, lines } = enrolment;
  await interrupt(enrolment, withdrawLinkOf(await enrol(await invite('p01'), 'ada')));
  const end = vi.spyOn(harness.app.secrets, 'end').mockImplementation(() => {
    throw new Error('the disk is full');
  });
  await finishWithdrawals(harness.app);
  end.mockRestore();
  expect(lines.some(line => line.includes('"account":"p01","reason":"the disk is full"'))).toBe(true);
  await finishWithdrawals(harness.app);
  expect(harness.app.secrets.names()).toEqual([]);
});

/** What the service answers who asks with a token. */
const askWith = async ({ sandbox }: EnrolmentHarness, token: string) =>
  (await fetch(`${sandbox.url}/v2/usercollection/personal_info`, { headers: { authorization: `Bearer ${token}` } })).status;

test('a withdrawal that is cut off while the service takes the tokens back is done at the next start of up', async () => {
  const enrolment = await openEnrolment(folder, 'cut-off', shared);
  const { harness, invite, enrol, lines } = enrolment;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const { secrets } = harness.app;
  const token = secrets.find('p01') ?? '';
  const revoke = vi.spyOn(OAuthClient.prototype, 'revoke').mockRejectedValue(new Error('killed'));
  onTestFinished(() => revoke.mockRestore());
  const page = await new Browser().open(link, { method: 'POST' });
  expect([page.title, secrets.find('p01'), secrets.names(), await askWith(enrolment, token)]).toEqual([
    'You have withdrawn',
    undefined,
    [],
    200,
  ]);
  expect(page.html).toContain('still lists the access');
  expect((await harness.commands.why({ name: 'p01' })).sentences.at(-1)).toContain('is not known to be taken back at the service');
  await finishWithdrawals(harness.app);
  expect(lines.filter(line => line.includes('a sign-in could not be taken back') && line.includes('"account":"p01"'))).toHaveLength(2);
  revoke.mockRestore();
  await finishWithdrawals(harness.app);
  expect([await askWith(enrolment, token), secrets.listEnded()]).toEqual([401, []]);
  expect((await new Browser().open(link)).html).not.toContain('still lists the access');
  expect((await harness.commands.why({ name: 'p01' })).sentences.join()).not.toContain('taken back');
});

test('the page of a link says that the access is still listed until the service has taken it back, and tries again', async () => {
  const enrolment = await openEnrolment(folder, 'again', shared);
  const { invite, enrol } = enrolment;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const revoke = vi.spyOn(OAuthClient.prototype, 'revoke').mockRejectedValue(new Error('away'));
  onTestFinished(() => revoke.mockRestore());
  const browser = new Browser();
  const pages = [await browser.open(link, { method: 'POST' }), await browser.open(link, { method: 'POST' }), await browser.open(link)];
  expect(pages.map(({ html }) => html.includes('still lists the access'))).toEqual([true, true, true]);
  revoke.mockRestore();
  const done = await browser.submit(await browser.open(link));
  expect([done.title, done.html.includes('still lists the access')]).toEqual(['You have withdrawn', false]);
});

test('a sign-in that cannot be read counts as not taken back', async () => {
  const enrolment = await openEnrolment(folder, 'unreadable', shared);
  const { harness, invite, enrol, lines } = enrolment;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const { secrets, settings } = harness.app;
  const path = join(settings.data, 'accounts.secret');
  const content = JSON.parse(readFileSync(path, 'utf8'));
  content.accounts[0][1] = Buffer.alloc(64, 7).toString('base64');
  writeFileSync(path, JSON.stringify(content));
  const page = await new Browser().open(link, { method: 'POST' });
  expect([page.title, page.html.includes('still lists the access'), secrets.names()]).toEqual(['You have withdrawn', true, []]);
  expect((await new Browser().open(link)).html).toContain('still lists the access');
  expect(lines.some(line => line.includes('"account":"p01"') && line.includes('could not be taken back: it cannot be read'))).toBe(true);
});

/** Has what is sealed of an account, or of what has ended, be damaged. */
function damage(
  { harness }: EnrolmentHarness,
  find: (content: { accounts: string[][]; ended: { entry: string[] }[] }) => string[] | undefined,
) {
  const path = join(harness.app.settings.data, 'accounts.secret');
  const content = JSON.parse(readFileSync(path, 'utf8'));
  const entry = find(content);
  if (!entry) throw new Error('there is none');
  entry[1] = Buffer.alloc(64, 7).toString('base64');
  writeFileSync(path, JSON.stringify(content));
}

test('who gets a name next is not told what could not be taken back of who had it before; doctor tells it', async () => {
  const enrolment = await openEnrolment(folder, 'next-holder', shared);
  const { harness, invite, enrol } = enrolment;
  const { app, commands } = harness;
  const revoke = takeNothingBack();
  await enrol(await invite('p01'), 'ada', ['personal']);
  await commands.removeAccount({ name: 'p01' });
  revoke.mockRestore();
  damage(enrolment, ({ ended }) => ended[0]?.entry);
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ben'));
  const tellLeft = async () => (await commands.why({ name: 'p01' })).sentences.filter(sentence => sentence.includes('taken back'));
  expect(await tellLeft()).toEqual([]);
  expect((await login(enrolment, 'p01', 'ben')).warning).toBeNull();
  const page = await new Browser().open(link, { method: 'POST' });
  expect([page.title, page.html.includes('still lists the access'), await tellLeft()]).toEqual(['You have withdrawn', false, []]);
  expect(app.secrets.listEnded()).toMatchObject([{ name: 'p01', signIn: undefined, isOfFormer: true }]);
  expect((await checkSignIns(app)).map(({ message }) => message)).toEqual([
    expect.stringMatching(/^p01: a sign-in that ended on .* is not known to be taken back at the service$/),
  ]);
});

test('a person who comes back by their name is told what could not be taken back before', async () => {
  const enrolment = await openEnrolment(folder, 'same-holder', shared);
  const { harness, invite, enrol } = enrolment;
  const revoke = takeNothingBack();
  await enrol(await invite('p01'), 'ada');
  await harness.commands.removeAccount({ name: 'p01' });
  revoke.mockRestore();
  damage(enrolment, ({ ended }) => ended[0]?.entry);
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const page = await new Browser().open(link, { method: 'POST' });
  expect([page.title, page.html.includes('still lists the access')]).toEqual(['You have withdrawn', true]);
});

test('what could not be taken back in 30 days is forgotten, and the page goes on to say it', async () => {
  let now = Date.parse('2025-03-01T00:00:00Z');
  const enrolment = await openEnrolment(folder, 'given-up', { ...shared, now: () => now });
  const { harness, invite, enrol } = enrolment;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const revoke = vi.spyOn(OAuthClient.prototype, 'revoke').mockRejectedValue(new Error('away'));
  onTestFinished(() => revoke.mockRestore());
  await new Browser().open(link, { method: 'POST' });
  const at = now;
  for (let day = 1; day <= 30; day++) {
    expect(harness.app.secrets.listEnded()).toMatchObject([{ name: 'p01', at, isGivenUp: false, tries: day }]);
    now += 86_400_000;
    await finishWithdrawals(harness.app);
  }
  expect(harness.app.secrets.listEnded()).toEqual([{ name: 'p01', at, signIn: undefined, isGivenUp: true, isOfFormer: false, tries: 30 }]);
  await finishWithdrawals(harness.app);
  expect(revoke).toHaveBeenCalledTimes(31);
  for (const page of [await new Browser().open(link), await new Browser().open(link, { method: 'POST' })]) {
    expect(page.html).toContain('still lists the access');
    expect(page.html).not.toContain('Try again');
  }
});

test.each([
  ['as it is tried again', '2025-03-01T00:00:00Z', '1970-01-01T00:00:10Z'],
  ['as the person withdraws', '1970-01-01T00:00:10Z', '2025-03-01T00:00:00Z'],
])('a clock that is wrong by years %s has nothing given up', async (when, withdrawnAt, triedAt) => {
  let now = Date.parse('2025-03-01T00:00:00Z');
  const enrolment = await openEnrolment(folder, `clock ${when}`, { ...shared, now: () => now });
  const { harness, invite, enrol } = enrolment;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const token = signInOf(enrolment, 'p01').accessToken;
  const revoke = takeNothingBack();
  now = Date.parse(withdrawnAt);
  await new Browser().open(link, { method: 'POST' });
  now = Date.parse(triedAt);
  await finishWithdrawals(harness.app);
  revoke.mockRestore();
  expect(await askWith(enrolment, token)).toBe(200);
  await finishWithdrawals(harness.app);
  expect([await askWith(enrolment, token), harness.app.secrets.listEnded()]).toEqual([401, []]);
});

test('who withdraws, is removed or signs in again ends not what another account is read with', async () => {
  const enrolment = await openEnrolment(folder, 'mixed-up', shared);
  const { harness, invite, enrol, lines } = enrolment;
  const { secrets, warehouse } = harness.app;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  await enrol(await invite('p02'), 'ben');
  const bens = secrets.findSignIn('p02');
  const own = secrets.findSignIn('p01');
  if (!bens || !own) throw new Error('nobody has signed in');
  const token = bens.accessToken;
  secrets.putSignIn('p01', { ...bens, id: own.id });
  const page = await new Browser().open(link, { method: 'POST' });
  expect([page.html.includes('still lists the access'), await askWith(enrolment, token)]).toEqual([true, 200]);
  expect(lines.some(line => line.includes('another account is read with the same tokens'))).toBe(true);

  const revoke = vi.spyOn(OAuthClient.prototype, 'revoke').mockRejectedValue(new Error('asked'));
  onTestFinished(() => revoke.mockRestore());
  // Ben's next pair is another one: what the account is parked for is all that tells.
  const mixUp = async () => {
    secrets.putSignIn('p01', { ...own, id: 'mixed-up', accessToken: 'bens-of-before', refreshToken: null });
    await changeAccounts(warehouse, async () => setAccountState(warehouse, await getAccount(warehouse, 'p01'), 'parked', ANOTHER_PERSON));
  };
  await mixUp();
  expect(await login(enrolment, 'p01', 'ada')).toMatchObject({ state: 'active', warning: null });
  await mixUp();
  await new Browser().open(link, { method: 'POST' });
  await mixUp();
  await harness.commands.removeAccount({ name: 'p01' });
  expect(revoke).not.toHaveBeenCalled();
});

/** What an account has signed in with. */
function signInOf({ harness }: EnrolmentHarness, name: string): SignIn {
  const signIn = harness.app.secrets.findSignIn(name);
  if (!signIn) throw new Error(`${name} has not signed in`);
  return signIn;
}

const park = ({ harness: { app } }: EnrolmentHarness, name: string, reason: string) =>
  changeAccounts(app.warehouse, async () => setAccountState(app.warehouse, await getAccount(app.warehouse, name), 'parked', reason));

/** A service that takes nothing back, until it is restored. */
function takeNothingBack() {
  const revoke = vi.spyOn(OAuthClient.prototype, 'revoke').mockRejectedValue(new Error('away'));
  onTestFinished(() => revoke.mockRestore());
  return revoke;
}

test('who withdraws is taken back although an account that is not read has the same tokens', async () => {
  const enrolment = await openEnrolment(folder, 'held-unread', shared);
  const { harness, invite, enrol } = enrolment;
  await enrol(await invite('p01'), 'ada');
  const link = withdrawLinkOf(await enrol(await invite('p02'), 'ben'));
  const [own, bens] = [signInOf(enrolment, 'p01'), signInOf(enrolment, 'p02')];
  harness.app.secrets.putSignIn('p01', { ...bens, id: own.id });
  await park(enrolment, 'p01', ANOTHER_PERSON);
  const page = await new Browser().open(link, { method: 'POST' });
  expect([page.html.includes('still lists the access'), await askWith(enrolment, bens.accessToken)]).toEqual([false, 401]);
  expect(harness.app.secrets.listEnded()).toEqual([]);
});

test('the second account of one person has its own sign-in taken back as it is removed, and no other', async () => {
  const enrolment = await openEnrolment(folder, 'twin', shared);
  const { harness, invite, enrol } = enrolment;
  await enrol(await invite('p01'), 'ada');
  await enrol(await invite('p02'), 'ben');
  const second = signInOf(enrolment, 'p02');
  await park(enrolment, 'p02', twinOf('p01'));
  await harness.commands.removeAccount({ name: 'p02' });
  expect([await askWith(enrolment, second.accessToken), await askWith(enrolment, signInOf(enrolment, 'p01').accessToken)]).toEqual([
    401, 200,
  ]);
});

test.each([
  ['end', 200],
  ['record', 500],
])('a withdrawal with the tokens of another person that is interrupted at %s leaves these at the service', async (step, status) => {
  const enrolment = await openEnrolment(folder, `mixed-up-killed-${step}`, shared);
  const { harness, invite, enrol, told } = enrolment;
  const { secrets, warehouse, settings } = harness.app;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  await enrol(await invite('p02'), 'ben');
  const [own, bens] = [signInOf(enrolment, 'p01'), signInOf(enrolment, 'p02')];
  secrets.putSignIn('p01', { ...bens, id: own.id });
  // Another pair of the same sign-in: that the tokens are ben's is told by the reason alone.
  if (!settings.signIn) throw new Error('no client');
  const next = await new OAuthClient(settings.signIn).refresh(bens.refreshToken ?? '');
  secrets.putSignIn('p02', { ...bens, accessToken: next.accessToken, refreshToken: next.refreshToken ?? null });
  await park(enrolment, 'p01', ANOTHER_PERSON);
  const { end } = secrets;
  const killed =
    step === 'record'
      ? vi.spyOn(warehouse, 'record').mockRejectedValueOnce(new Error('killed'))
      : vi.spyOn(secrets, 'end').mockImplementationOnce((...given) => {
          end.apply(secrets, given);
          throw new Error('killed');
        });
  expect((await new Browser().open(link, { method: 'POST' })).status).toBe(status);
  killed.mockRestore();
  await finishWithdrawals(harness.app);
  expect(told).toMatchObject([{ reason: 'consent_withdrawn', user: 'p01' }]);
  expect((await new Browser().open(link, { method: 'POST' })).title).toBe('You have withdrawn');
  await finishWithdrawals(harness.app);
  expect([await askWith(enrolment, next.accessToken), secrets.listEnded()]).toMatchObject([200, [{ name: 'p01', isGivenUp: true }]]);
});

test('what a renewal brings while its person withdraws is kept until it is taken back', async () => {
  const enrolment = await openEnrolment(folder, 'renewed-meanwhile', shared);
  const { harness, invite, enrol } = enrolment;
  const { secrets } = harness.app;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  secrets.putSignIn('p01', { ...signInOf(enrolment, 'p01'), expiresAt: Date.now() - 1 });
  const { refresh } = OAuthClient.prototype;
  let answer: () => void = () => undefined;
  const answered = new Promise<void>(resolve => {
    answer = resolve;
  });
  let renewed = '';
  const asked = vi.spyOn(OAuthClient.prototype, 'refresh').mockImplementation(async function (this: OAuthClient, token) {
    if (renewed) throw new SignInError('invalid_grant', 'used');
    const tokens = await refresh.call(this, token);
    renewed = tokens.accessToken;
    await answered;
    return tokens;
  });
  onTestFinished(() => asked.mockRestore());
  // A service that ends the token that it is told, and no other, and is away afterwards.
  const revoke = takeNothingBack().mockResolvedValueOnce();
  const signIns = await harness.app.signIns();
  const renewing = signIns.renewDue();
  await until('the pair is given', () => renewed !== '');
  expect((await new Browser().open(link, { method: 'POST' })).html).not.toContain('still lists the access');
  answer();
  await renewing;
  expect(secrets.listEnded()).toMatchObject([{ name: 'p01', signIn: { accessToken: renewed } }]);
  expect((await new Browser().open(link)).html).toContain('still lists the access');
  revoke.mockRestore();
  await finishWithdrawals(harness.app);
  expect([await askWith(enrolment, renewed), secrets.listEnded()]).toEqual([401, []]);
});

test('a sign-in whose access token has ended is renewed to be taken back, for the service may know it by that alone', async () => {
  const enrolment = await openEnrolment(folder, 'ended-token', shared);
  const { harness, invite, enrol } = enrolment;
  const { secrets } = harness.app;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const before = { ...signInOf(enrolment, 'p01'), expiresAt: Date.now() - 1 };
  secrets.putSignIn('p01', before);
  const revoke = takeNothingBack();
  await new Browser().open(link, { method: 'POST' });
  const [ended] = secrets.listEnded();
  const renewed = ended?.signIn?.accessToken ?? '';
  expect([ended?.signIn?.previous, renewed === before.accessToken, await askWith(enrolment, renewed)]).toEqual([
    before.refreshToken,
    false,
    200,
  ]);
  expect(revoke.mock.calls).toEqual([[{ accessToken: renewed, refreshToken: ended?.signIn?.refreshToken }]]);
  revoke.mockRestore();
  await finishWithdrawals(harness.app);
  expect([await askWith(enrolment, renewed), secrets.listEnded()]).toEqual([401, []]);
});

/** A service that takes a sign-in back by an access token that is alive, and answers the same to any other. */
function takeBackByAliveTokens(enrolment: EnrolmentHarness) {
  const { revoke } = OAuthClient.prototype;
  const spy = vi.spyOn(OAuthClient.prototype, 'revoke').mockImplementation(async function (this: OAuthClient, tokens) {
    if ((await askWith(enrolment, tokens.accessToken)) === 200) await revoke.call(this, tokens);
  });
  onTestFinished(() => spy.mockRestore());
}

/** Has an account have an access token that is dead though no clock says so; gives another one of the same sign-in, which is alive. */
function loseAccessToken(enrolment: EnrolmentHarness, name: string): string {
  const signIn = signInOf(enrolment, name);
  enrolment.harness.app.secrets.putSignIn(name, { ...signIn, accessToken: 'dead' });
  return signIn.accessToken;
}

test('that a dead access token is answered with 200 is no proof: the sign-in is renewed to be taken back, whatever a clock says', async () => {
  const enrolment = await openEnrolment(folder, 'dead-token', shared);
  const { harness, invite, enrol } = enrolment;
  takeBackByAliveTokens(enrolment);
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const alive = loseAccessToken(enrolment, 'p01');
  const page = await new Browser().open(link, { method: 'POST' });
  expect([page.html.includes('still lists the access'), await askWith(enrolment, alive), harness.app.secrets.listEnded()]).toEqual([
    false,
    401,
    [],
  ]);
});

test.each(['unavailable', 'client'] as const)(
  'a sign-in that cannot be renewed to be taken back stays on the list while the service gives no clear answer: %s',
  async kind => {
    const enrolment = await openEnrolment(folder, `unclear-${kind}`, shared);
    const { harness, invite, enrol } = enrolment;
    takeBackByAliveTokens(enrolment);
    const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
    const alive = loseAccessToken(enrolment, 'p01');
    const refresh = vi.spyOn(OAuthClient.prototype, 'refresh').mockRejectedValueOnce(new SignInError(kind, 'ill'));
    onTestFinished(() => refresh.mockRestore());
    const page = await new Browser().open(link, { method: 'POST' });
    expect([page.html.includes('still lists the access'), await askWith(enrolment, alive)]).toEqual([true, 200]);
    expect(harness.app.secrets.listEnded()).toMatchObject([{ name: 'p01', signIn: { accessToken: 'dead' } }]);
    await finishWithdrawals(harness.app);
    expect([await askWith(enrolment, alive), harness.app.secrets.listEnded()]).toEqual([401, []]);
  },
);

test('a sign-in whose refresh token is nothing to the service is taken back by its access token alone', async () => {
  const enrolment = await openEnrolment(folder, 'refused-refresh', shared);
  const { harness, invite, enrol } = enrolment;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const signIn = signInOf(enrolment, 'p01');
  harness.app.secrets.putSignIn('p01', { ...signIn, refreshToken: 'nothing' });
  const revoke = vi.spyOn(OAuthClient.prototype, 'revoke');
  onTestFinished(() => revoke.mockRestore());
  await new Browser().open(link, { method: 'POST' });
  expect(revoke.mock.calls).toEqual([[{ accessToken: signIn.accessToken, refreshToken: undefined }]]);
  expect([await askWith(enrolment, signIn.accessToken), harness.app.secrets.listEnded()]).toEqual([401, []]);
});

test('a renewal that brings what somebody else is read with takes nothing back by it', async () => {
  const enrolment = await openEnrolment(folder, 'mixed-up-renewal', shared);
  const { harness, invite, enrol } = enrolment;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  await enrol(await invite('p02'), 'ben');
  const { accessToken, refreshToken } = signInOf(enrolment, 'p02');
  const bens = { accessToken, refreshToken: refreshToken ?? undefined, expiresIn: 3_600, scopes: undefined };
  const refresh = vi.spyOn(OAuthClient.prototype, 'refresh').mockResolvedValueOnce(bens);
  onTestFinished(() => refresh.mockRestore());
  await new Browser().open(link, { method: 'POST' });
  expect([await askWith(enrolment, accessToken), harness.app.secrets.listEnded()]).toMatchObject([200, [{ name: 'p01' }]]);
});

test('who is erased is taken back though their access token is dead', async () => {
  const enrolment = await openEnrolment(folder, 'erased-dead', shared);
  const { harness, invite, enrol } = enrolment;
  takeBackByAliveTokens(enrolment);
  await enrol(await invite('p01'), 'ada');
  const alive = loseAccessToken(enrolment, 'p01');
  expect(await harness.commands.eraseAccount({ name: 'p01' })).toMatchObject({ user_id: 'p01', found: [], sign_in_left: false });
  expect(await askWith(enrolment, alive)).toBe(401);
});

test('an erasing that was killed is finished by the next start, which takes the sign-in back', async () => {
  const enrolment = await openEnrolment(folder, 'erased-killed', shared);
  const { harness, invite, enrol, sandbox } = enrolment;
  takeBackByAliveTokens(enrolment);
  await enrol(await invite('p01'), 'ada');
  await enrol(await invite('p02'), 'ben');
  const alive = loseAccessToken(enrolment, 'p01');
  const bens = signInOf(enrolment, 'p02').accessToken;
  const { settings } = harness.app;
  await harness.close();
  const marker = { format: 1, name: 'p01', serviceUserIds: null, queue: 'embedded' };
  writeFileSync(join(settings.data, 'erasing.json'), JSON.stringify(marker));
  const opened = await openHarness(settings.data, sandbox.url, { settings });
  expect([await askWith(enrolment, alive), await askWith(enrolment, bens)]).toEqual([401, 200]);
  expect([opened.app.secrets.names(), readFileSync(join(settings.data, 'accounts.secret'), 'utf8').includes('p01')]).toEqual([
    ['p02'],
    false,
  ]);
});

test('an erasing that is killed while the service takes the sign-in back keeps what it was renewed to, for who finishes it', async () => {
  const enrolment = await openEnrolment(folder, 'erased-renewed', shared);
  const { harness, invite, enrol, sandbox } = enrolment;
  takeBackByAliveTokens(enrolment);
  await enrol(await invite('p01'), 'ada');
  const alive = loseAccessToken(enrolment, 'p01');
  const { settings, log, now } = harness.app;
  await harness.close();
  const revoke = takeNothingBack();
  const forget = vi.spyOn(Secrets.prototype, 'forget').mockImplementation(() => {
    throw new Error('killed');
  });
  onTestFinished(() => forget.mockRestore());
  await expect(eraseAccount({ settings, log, now }, 'p01')).rejects.toThrow('The erasing is begun');
  forget.mockRestore();
  revoke.mockRestore();
  const { secrets } = harness.app;
  expect([secrets.names(), secrets.listEnded()]).toMatchObject([[], [{ name: 'p01', signIn: { previous: expect.any(String) } }]]);
  const opened = await openHarness(settings.data, sandbox.url, { settings });
  expect([await askWith(enrolment, alive), opened.app.secrets.listEnded()]).toEqual([401, []]);
});

test('an erasing takes nothing back of a sign-in that is known to be of another person, finished by whomever', async () => {
  const enrolment = await openEnrolment(folder, 'erased-another', shared);
  const { harness, invite, enrol, sandbox } = enrolment;
  await enrol(await invite('p01'), 'ada');
  const { accessToken } = signInOf(enrolment, 'p01');
  await park(enrolment, 'p01', ANOTHER_PERSON);
  const { settings, log, now } = harness.app;
  await harness.close();
  const killed = vi.spyOn(Secrets.prototype, 'remove').mockImplementation(() => {
    throw new Error('killed');
  });
  onTestFinished(() => killed.mockRestore());
  await expect(eraseAccount({ settings, log, now }, 'p01')).rejects.toThrow('The erasing is begun');
  killed.mockRestore();
  const opened = await openHarness(settings.data, sandbox.url, { settings });
  expect([await askWith(enrolment, accessToken), opened.app.secrets.names(), opened.app.secrets.listEnded()]).toEqual([200, [], []]);
});

test('who ends while the service is slow to take back who was erased waits for that', async () => {
  const enrolment = await openEnrolment(folder, 'erased-ending', shared);
  const { harness, invite, enrol } = enrolment;
  await enrol(await invite('p01'), 'ada');
  const { accessToken } = signInOf(enrolment, 'p01');
  const { settings, log } = harness.app;
  await harness.close();
  const data = await DataFolder.open({ settings, log });
  const { revoke } = OAuthClient.prototype;
  let answer: () => void = () => undefined;
  const answered = new Promise<void>(resolve => {
    answer = resolve;
  });
  const asked = vi.spyOn(OAuthClient.prototype, 'revoke').mockImplementation(async function (this: OAuthClient, tokens) {
    await answered;
    return revoke.call(this, tokens);
  });
  onTestFinished(() => asked.mockRestore());
  // Nobody waits for ten seconds here.
  const { setTimeout } = globalThis;
  const waited = vi
    .spyOn(globalThis, 'setTimeout')
    .mockImplementation((call, ms, ...rest) => setTimeout(call, ms === 10_000 ? 0 : ms, ...rest));
  onTestFinished(() => waited.mockRestore());
  await data.commands.eraseAccount({ name: 'p01' });
  waited.mockRestore();
  expect(await askWith(enrolment, accessToken)).toBe(200);
  const closing = data.close();
  const isLeft = () => enrolment.lines.some(line => line.includes('sign-ins are being made, renewed or taken back, which is waited for'));
  await until('it is waited for', isLeft);
  answer();
  await closing;
  expect(await askWith(enrolment, accessToken)).toBe(401);
});

test('who is erased while the service does not answer is erased within seconds, and nothing of them comes back', async () => {
  const enrolment = await openEnrolment(folder, 'erased-slow', shared);
  const { harness, invite, enrol } = enrolment;
  await enrol(await invite('p01'), 'ada');
  const { accessToken } = signInOf(enrolment, 'p01');
  const { settings, log, now } = harness.app;
  await harness.close();
  const { refresh } = OAuthClient.prototype;
  let answer: () => void = () => undefined;
  const answered = new Promise<void>(resolve => {
    answer = resolve;
  });
  const asked = vi.spyOn(OAuthClient.prototype, 'refresh').mockImplementation(async function (this: OAuthClient, token) {
    await answered;
    return refresh.call(this, token);
  });
  onTestFinished(() => asked.mockRestore());
  // Nobody waits for ten seconds here.
  const { setTimeout } = globalThis;
  const waited = vi
    .spyOn(globalThis, 'setTimeout')
    .mockImplementation((call, ms, ...rest) => setTimeout(call, ms === 10_000 ? 0 : ms, ...rest));
  onTestFinished(() => waited.mockRestore());
  const report = await eraseAccount({ settings, log, now }, 'p01');
  waited.mockRestore();
  expect(report).toMatchObject({ user_id: 'p01', found: [], sign_in_left: true });
  const sealed = () => readFileSync(join(settings.data, 'accounts.secret'), 'utf8').includes('p01');
  expect([sealed(), await askWith(enrolment, accessToken)]).toEqual([false, 200]);
  answer();
  await until('it is taken back late', async () => (await askWith(enrolment, accessToken)) === 401);
  expect(sealed()).toBe(false);
});

test('a renewed pair that the disk does not take is taken back at once, or written as soon as it can be', async () => {
  const enrolment = await openEnrolment(folder, 'full-disk', shared);
  const { harness, invite, enrol } = enrolment;
  const { secrets } = harness.app;
  const fillDisk = () =>
    vi.spyOn(secrets, 'renewEnded').mockImplementationOnce(() => {
      throw new Error('ENOSPC: no space left on device, write');
    });
  takeBackByAliveTokens(enrolment);
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const alive = loseAccessToken(enrolment, 'p01');
  fillDisk();
  const page = await new Browser().open(link, { method: 'POST' });
  expect([page.html.includes('still lists the access'), await askWith(enrolment, alive), secrets.listEnded()]).toEqual([false, 401, []]);

  const again = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const { refreshToken } = signInOf(enrolment, 'p01');
  fillDisk();
  const revoke = takeNothingBack();
  await new Browser().open(again, { method: 'POST' });
  expect(secrets.listEnded()).toMatchObject([{ signIn: { previous: refreshToken } }]);
  revoke.mockRestore();
});

test('a button that is pressed twice uses a refresh token up once', async () => {
  const enrolment = await openEnrolment(folder, 'twice', shared);
  const { harness, invite, enrol } = enrolment;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const { accessToken } = signInOf(enrolment, 'p01');
  const { refresh } = OAuthClient.prototype;
  let answer: () => void = () => undefined;
  const answered = new Promise<void>(resolve => {
    answer = resolve;
  });
  const asked = vi.spyOn(OAuthClient.prototype, 'refresh').mockImplementation(async function (this: OAuthClient, token) {
    const tokens = await refresh.call(this, token);
    await answered;
    return tokens;
  });
  const listed = vi.spyOn(harness.app.secrets, 'listEnded');
  onTestFinished(() => asked.mockRestore());
  const first = new Browser().open(link, { method: 'POST' });
  await until('the service is asked', () => asked.mock.calls.length === 1);
  listed.mockClear();
  const second = new Browser().open(link, { method: 'POST' });
  await until('the second one waits', () => listed.mock.calls.length > 0);
  answer();
  const pages = await Promise.all([first, second]);
  expect([asked.mock.calls.length, ...pages.map(({ html }) => html.includes('still lists the access'))]).toEqual([1, false, false]);
  expect([await askWith(enrolment, accessToken), harness.app.secrets.listEnded()]).toEqual([401, []]);
});

test.each(['key', 'address'])('who is removed while their sign-in cannot be read is taken back once it can be: the %s', async what => {
  const enrolment = await openEnrolment(folder, `removed-unreadable-${what}`, shared);
  const { harness, invite, enrol, lines } = enrolment;
  const { app } = harness;
  const { secrets, settings } = app;
  await enrol(await invite('p01'), 'ada');
  const { accessToken } = signInOf(enrolment, 'p01');
  const restore = makeUnreadable(enrolment, what);
  await harness.commands.removeAccount({ name: 'p01' });
  expect(lines.at(-1)).toContain('a sign-in that has ended could not be taken back: it cannot be read');
  expect([readFileSync(join(settings.data, 'accounts.secret'), 'utf8').includes('p01'), app.secrets.names()]).toEqual([true, []]);
  restore();
  await finishWithdrawals(app);
  expect([await askWith(enrolment, accessToken), secrets.listEnded()]).toEqual([401, []]);
});

/** Gives the key another text, or the service another address; and gives what undoes that. */
function makeUnreadable({ harness: { app } }: EnrolmentHarness, what: string): () => void {
  const { secrets, settings } = app;
  if (what === 'address') {
    Object.defineProperty(app, 'secrets', {
      value: new Secrets({ folder: settings.data, address: 'https://other.example' }),
      configurable: true,
    });
    return () => Object.defineProperty(app, 'secrets', { value: secrets });
  }
  const path = join(settings.data, 'secret.key');
  const key = readFileSync(path);
  writeFileSync(path, '');
  return () => writeFileSync(path, key);
}

test.each(['key', 'address'])(
  'a return that was killed and cannot be read just now is not ended, nor told as a withdrawal: the %s',
  async what => {
    const enrolment = await openEnrolment(folder, `unreadable-return-${what}`, shared);
    const { harness, invite, enrol, told, lines } = enrolment;
    const { app } = harness;
    await new Browser().open(withdrawLinkOf(await enrol(await invite('p01'), 'ada')), { method: 'POST' });
    const { record } = app.warehouse;
    const killed = vi.spyOn(app.warehouse, 'record').mockImplementation(async entries => {
      if (app.secrets.names().includes('p01')) throw new Error('killed');
      return record.call(app.warehouse, entries);
    });
    await expect(login(enrolment, 'p01', 'ada')).rejects.toThrow('killed');
    killed.mockRestore();
    const restore = makeUnreadable(enrolment, what);
    await finishWithdrawals(app);
    expect([app.secrets.names(), app.secrets.listEnded(), told.length]).toEqual([['p01'], [], 1]);
    expect(lines.at(-1)).toContain('a sign-in of a person who has withdrawn cannot be read, and stays as it is: it may be of their return');
    restore();
    expect(await askWith(enrolment, signInOf(enrolment, 'p01').accessToken)).toBe(200);
  },
);

test('a sign-in that is not kept, and that the service does not take back, is on the list of those that are', async () => {
  const enrolment = await openEnrolment(folder, 'not-kept', shared);
  const { harness, invite, enrol, lines } = enrolment;
  const { secrets } = harness.app;
  await enrol(await invite('p02'), 'ada');
  const revoke = takeNothingBack();
  await enrol(await invite('p03'), 'ada');
  expect(lines.some(line => line.includes('"account":"p03"') && line.includes('not kept could not be taken back'))).toBe(true);
  const [left] = secrets.listEnded();
  const token = left?.signIn?.accessToken ?? '';
  expect([left?.name, secrets.names(), await askWith(enrolment, token)]).toEqual(['p03', ['p02'], 200]);
  revoke.mockRestore();
  await finishWithdrawals(harness.app);
  expect([await askWith(enrolment, token), secrets.listEnded(), await askWith(enrolment, signInOf(enrolment, 'p02').accessToken)]).toEqual([
    401,
    [],
    200,
  ]);
});

test('a sign-in that is not kept, and that neither the disk nor the service takes at first, is on that list too', async () => {
  const enrolment = await openEnrolment(folder, 'not-kept-late', shared);
  const { harness, invite, enrol } = enrolment;
  const { secrets } = harness.app;
  await enrol(await invite('p02'), 'ada');
  takeNothingBack();
  const put = vi.spyOn(secrets, 'putEnded').mockImplementationOnce(() => {
    throw new Error('no space left on device');
  });
  onTestFinished(() => put.mockRestore());
  await enrol(await invite('p03'), 'ada');
  expect(secrets.listEnded()).toMatchObject([{ name: 'p03', isGivenUp: false }]);
});

test('with a key that is damaged a withdrawal is finished, its page opens, and the person is erased', async () => {
  const enrolment = await openEnrolment(folder, 'damaged-key', shared);
  const { harness, invite, enrol, lines } = enrolment;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const { settings, log, now } = harness.app;
  takeNothingBack();
  await new Browser().open(link, { method: 'POST' });
  writeFileSync(join(settings.data, 'secret.key'), '');
  expect((await new Browser().open(link)).html).toContain('still lists the access');
  await finishWithdrawals(harness.app);
  expect(lines.at(-1)).toContain('a sign-in that has ended could not be taken back: it cannot be read');
  await harness.close();
  expect(await eraseAccount({ settings, log, now }, 'p01')).toMatchObject({ user_id: 'p01', found: [] });
  expect(readFileSync(join(settings.data, 'accounts.secret'), 'utf8')).not.toContain('p01');
});

test('what could not be taken back of who is erased is said, and erased', async () => {
  const enrolment = await openEnrolment(folder, 'erased-unreadable', shared);
  const { harness, invite, enrol, lines } = enrolment;
  await enrol(await invite('p01'), 'ada');
  writeFileSync(join(harness.app.settings.data, 'secret.key'), '');
  const report = await harness.commands.eraseAccount({ name: 'p01' });
  expect(report).toMatchObject({ user_id: 'p01', found: [], sign_in_left: true });
  expect(linesOf(report)).toEqual([expect.stringContaining('the service did not take the access back, and may still list it')]);
  const told = 'a sign-in of who is erased cannot be taken back at the service: its person can do that there';
  expect(lines.filter(line => line.includes(told))).toHaveLength(1);
});

test('tokens of a sign-in that has ended are kept for 30 days, also where they are of another service', async () => {
  let now = Date.parse('2025-03-01T00:00:00Z');
  const enrolment = await openEnrolment(folder, 'given-up-elsewhere', { ...shared, now: () => now });
  const { harness, invite, enrol } = enrolment;
  const { app } = harness;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  takeNothingBack();
  await new Browser().open(link, { method: 'POST' });
  const { data } = app.settings;
  Object.defineProperty(app, 'secrets', { value: new Secrets({ folder: data, address: 'https://other.example' }) });
  const sealed = () => JSON.parse(readFileSync(join(data, 'accounts.secret'), 'utf8')).ended[0].entry[1];
  for (let day = 1; day < 30; day++) await finishWithdrawals(app);
  now += 30 * 86_400_000 - 1;
  await finishWithdrawals(app);
  expect(sealed()).not.toBe('');
  now += 1;
  await finishWithdrawals(app);
  expect([sealed(), (await new Browser().open(link)).html.includes('still lists the access')]).toEqual(['', true]);
});

test('up tries each day to take back what has ended, and doctor says of whom it is not, also where the account was removed', async () => {
  const now = Date.parse('2025-03-01T00:00:00Z');
  const enrolment = await openEnrolment(folder, 'each-day', { ...shared, now: () => now });
  const { harness, invite, enrol } = enrolment;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const token = signInOf(enrolment, 'p01').accessToken;
  const revoke = takeNothingBack();
  await new Browser().open(link, { method: 'POST' });
  await harness.commands.removeAccount({ name: 'p01' });
  expect(await checkSignIns(harness.app)).toEqual([
    {
      check: 'sign-ins',
      state: 'warn',
      message: 'p01: a sign-in that ended on 2025-03-01 is not known to be taken back at the service',
      fix: 'ringneck up tries it again each day for 30 days; the person can end the access at the service',
    },
  ]);
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const stop = finishDaily(harness.app);
  vi.advanceTimersByTime(86_400_000);
  await until('it is tried', () => revoke.mock.calls.length === 2);
  revoke.mockRestore();
  vi.advanceTimersByTime(86_400_000);
  await stop();
  expect([await askWith(enrolment, token), await checkSignIns(harness.app)]).toEqual([401, []]);
});

test('the sign-in before, of who signs in again, is kept until it is taken back', async () => {
  const enrolment = await openEnrolment(folder, 'former', shared);
  const { harness, invite, enrol } = enrolment;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const former = signInOf(enrolment, 'p01');
  const revoke = takeNothingBack();
  const { warning } = await login(enrolment, 'p01', 'ada');
  expect(warning).toBe(
    'the sign-in before could not be taken back at the service: ringneck up tries it each day for 30 days, and its person can do that there',
  );
  expect(harness.app.secrets.listEnded()).toMatchObject([{ name: 'p01', signIn: { id: former.id } }]);
  await new Browser().open(link, { method: 'POST' });
  expect(harness.app.secrets.listEnded()).toHaveLength(2);
  revoke.mockRestore();
  await finishWithdrawals(harness.app);
  expect([await askWith(enrolment, former.accessToken), harness.app.secrets.listEnded()]).toEqual([401, []]);
});

test('a sign-in in whose place a token is given is taken back once the token has worked, and kept until then', async () => {
  const enrolment = await openEnrolment(folder, 'token-instead', shared);
  const { harness, invite, enrol, sandbox } = enrolment;
  const { commands, app } = harness;
  const token = sandbox.people.find(({ name }) => name === 'ada')?.token ?? '';
  await enrol(await invite('p01'), 'ada');
  const first = signInOf(enrolment, 'p01').accessToken;
  expect(await commands.addAccount({ name: 'p01', token })).toMatchObject({ state: 'active', warning: null });
  expect([await askWith(enrolment, first), await askWith(enrolment, token), app.secrets.listEnded()]).toEqual([401, 200, []]);
  await login(enrolment, 'p01', 'ada');
  takeNothingBack();
  expect((await commands.addAccount({ name: 'p01', token })).warning).toContain(
    'the sign-in before could not be taken back at the service',
  );
  expect([app.secrets.find('p01'), app.secrets.listEnded().map(({ name }) => name)]).toEqual([token, ['p01']]);
});

test.each(['damaged', 'address'])('the sign-in before that cannot be read, of who signs in again, is kept too: %s', async what => {
  const enrolment = await openEnrolment(folder, `former-unread-${what}`, shared);
  const { harness, invite, enrol } = enrolment;
  const { app } = harness;
  await enrol(await invite('p01'), 'ada');
  const { accessToken } = signInOf(enrolment, 'p01');
  if (what === 'damaged') damage(enrolment, ({ accounts }) => accounts[0]);
  const restore = what === 'address' ? makeUnreadable(enrolment, what) : () => undefined;
  const { warning } = await login(enrolment, 'p01', 'ada');
  expect(warning).toContain('the sign-in before could not be taken back at the service: ringneck up tries it each day for 30 days');
  expect(app.secrets.listEnded()).toMatchObject([{ name: 'p01', signIn: undefined, isGivenUp: false }]);
  expect(signInOf(enrolment, 'p01').accessToken).not.toBe(accessToken);
  restore();
  await finishWithdrawals(app);
  const isRead = what === 'address';
  expect([await askWith(enrolment, accessToken), app.secrets.listEnded().length]).toEqual(isRead ? [401, 0] : [200, 1]);
});

test('an account gets another name once what has ended of it is taken back, and nothing stays by the former one', async () => {
  const enrolment = await openEnrolment(folder, 'moved-in-turn', shared);
  const { harness, invite, enrol } = enrolment;
  const { app, commands } = harness;
  await import('../../../src/app/move/move.ts');
  await enrol(await invite('p01'), 'ada');
  const { refresh } = OAuthClient.prototype;
  let answer: () => void = () => undefined;
  const answered = new Promise<void>(resolve => {
    answer = resolve;
  });
  const asked = vi.spyOn(OAuthClient.prototype, 'refresh').mockImplementation(async function (this: OAuthClient, token) {
    const tokens = await refresh.call(this, token);
    await answered;
    return tokens;
  });
  onTestFinished(() => asked.mockRestore());
  takeNothingBack();
  const signedIn = login(enrolment, 'p01', 'ada');
  await until('the sign-in before is renewed', () => asked.mock.calls.length === 1);
  const order: string[] = [];
  const { withExclusive } = app;
  app.withExclusive = (work, doing) => {
    order.push('closed');
    return withExclusive(work, doing);
  };
  const looked = vi.spyOn(app.secrets, 'listOfAny');
  const moved = commands.moveAccount({ from: 'p01', to: 'p02' });
  await until('the move may begin', () => looked.mock.calls.length > 0);
  for (let turns = 0; turns < 1000; turns++) await new Promise(setImmediate);
  order.push('answered');
  answer();
  await signedIn;
  expect(await moved).toMatchObject({ user_id: 'p02', before: 'p01' });
  const { data, serviceUrl: address } = app.settings;
  const secrets = new Secrets({ folder: data, address });
  expect([order, secrets.names(), secrets.listEnded().map(({ name }) => name)]).toEqual([['answered', 'closed'], ['p02'], ['p02']]);
});

test.each(['killed', 'away'])(
  'the sign-in of an account that was removed is kept until it is taken back, and then nothing of it is left: %s',
  async how => {
    const enrolment = await openEnrolment(folder, `removed-${how}`, shared);
    const { harness, invite, enrol } = enrolment;
    const { secrets, warehouse } = harness.app;
    await enrol(await invite('p01'), 'ada');
    const { accessToken: token, id } = signInOf(enrolment, 'p01');
    const revoke = takeNothingBack();
    const killed = how === 'killed' ? vi.spyOn(warehouse, 'record').mockRejectedValue(new Error('killed')) : undefined;
    const removed = harness.commands.removeAccount({ name: 'p01' });
    await (killed ? expect(removed).rejects.toThrow('killed') : removed);
    killed?.mockRestore();
    expect([secrets.names(), secrets.listEnded()]).toMatchObject([[], [{ name: 'p01', signIn: { id } }]]);
    revoke.mockRestore();
    await finishWithdrawals(harness.app);
    expect([await askWith(enrolment, token), secrets.listEnded()]).toEqual([401, []]);
  },
);

test('a sign-in after a withdrawal that is killed before its account is recorded stays, unread, and is told as that', async () => {
  const enrolment = await openEnrolment(folder, 'killed-return', shared);
  const { harness, invite, enrol, told } = enrolment;
  const { secrets, warehouse } = harness.app;
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  await new Browser().open(link, { method: 'POST' });
  const { record } = warehouse;
  const killed = vi.spyOn(warehouse, 'record').mockImplementation(async entries => {
    if (secrets.names().includes('p01')) throw new Error('killed');
    return record.call(warehouse, entries);
  });
  await expect(login(enrolment, 'p01', 'ada')).rejects.toThrow('killed');
  killed.mockRestore();
  const token = signInOf(enrolment, 'p01').accessToken;
  await finishWithdrawals(harness.app);
  expect([await askWith(enrolment, token), secrets.names(), secrets.listEnded(), told]).toMatchObject([200, ['p01'], [], [{}]]);
  expect((await harness.read('SELECT state FROM sync.accounts'))[0]).toEqual(['paused']);
  expect(await checkSignIns(harness.app)).toEqual([
    {
      check: 'sign-ins',
      state: 'warn',
      message: 'p01: who had withdrawn signed in again, which was interrupted: nothing is read with it',
      fix: 'ringneck account invite p01, or ringneck account login p01',
    },
  ]);
  // Who signs in once more is read, and has one sign-in at the service.
  expect(await login(enrolment, 'p01', 'ada')).toMatchObject({ state: 'active' });
  expect([await askWith(enrolment, token), secrets.listEnded()]).toEqual([401, []]);
  // The next withdrawal ends what was signed in with after the one before.
  const next = signInOf(enrolment, 'p01');
  expect(next.afterWithdrawal).toBeGreaterThan(0);
  await interrupt(enrolment, link);
  await finishWithdrawals(harness.app);
  expect([await askWith(enrolment, next.accessToken), secrets.names()]).toEqual([401, []]);
});

test('a sign-in that comes as its account is removed is taken back', async () => {
  const enrolment = await openEnrolment(folder, 'removed-meanwhile', shared);
  const { harness, invite, enrol } = enrolment;
  await enrol(await invite('p01'), 'ada');
  const { warehouse, secrets } = harness.app;
  let removing: Promise<unknown> | undefined;
  const former = secrets.find('p01') ?? '';
  await changeAccounts(warehouse, async () => {
    removing = harness.commands.removeAccount({ name: 'p01' });
    const signIn = secrets.findSignIn('p01');
    if (signIn) secrets.putSignIn('p01', { ...signIn, id: 'next', accessToken: 'next', refreshToken: null });
    await Promise.resolve();
  });
  const revoke = vi.spyOn(OAuthClient.prototype, 'revoke').mockResolvedValue();
  onTestFinished(() => revoke.mockRestore());
  await removing;
  expect([revoke.mock.calls, await askWith(enrolment, former)]).toEqual([[[{ accessToken: 'next', refreshToken: undefined }]], 200]);
});

test('nobody who has withdrawn is resumed, and to pause the account takes its reason not away', async () => {
  const { harness, invite, enrol } = await openEnrolment(folder, 'resumed', shared);
  const browser = new Browser();
  await browser.submit(await browser.open(withdrawLinkOf(await enrol(await invite('p01'), 'ada'))));
  const refusal =
    'the person of p01 has withdrawn, and is read again only after another sign-in of theirs: ringneck account invite p01, or ringneck account login p01';
  await expect(harness.commands.resumeAccounts({ names: ['p01'] })).rejects.toThrow(refusal);
  await harness.commands.pauseAccount({ name: 'p01' });
  await expect(harness.commands.resumeAccounts({ names: ['p01'] })).rejects.toThrow(refusal);
  expect(await harness.read('SELECT state, reason FROM sync.accounts')).toEqual([
    ['paused', 'withdrawn by the person; its rows stay until: ringneck account remove p01 --erase'],
  ]);
});

test('a token that the study gives for who has withdrawn is not taken, alone or in a file', async () => {
  const { harness, sandbox, invite, enrol } = await openEnrolment(folder, 'added', shared);
  const token = sandbox.people[0]?.token ?? '';
  await new Browser().open(withdrawLinkOf(await enrol(await invite('p01'), 'ada')), { method: 'POST' });
  const { addAccount, addAccounts } = harness.commands;
  const refusal = 'the person of p01 has withdrawn, and is read again only after another sign-in of theirs: ';
  await expect(addAccount({ name: 'p01', token })).rejects.toThrow(refusal);
  await expect(addAccount({ name: 'p01', token: 'nonsense' })).rejects.toThrow(refusal);
  await expect(addAccount({ name: 'p01' })).rejects.toThrow(refusal);
  const reason = 'withdrawn by the person; its rows stay until: ringneck account remove p01 --erase';
  const people = [{ line: 2, name: 'p01', token, facts: {}, extra: {} }];
  const { people: reports } = await addAccounts({ people }, { emit: () => {}, signal: new AbortController().signal });
  expect(reports).toMatchObject([{ line: 2, user_id: 'p01', result: 'unchanged', state: 'paused', reason }]);
  expect(await harness.read('SELECT user_id, state, reason FROM sync.accounts')).toEqual([['p01', 'paused', reason]]);
  expect(harness.app.secrets.names()).toEqual([]);
});

test('the same file brings nobody back who was removed, withdrawn or not, and adds the others', async () => {
  const { harness, sandbox, invite, enrol } = await openEnrolment(folder, 'file-again', shared);
  const [ada, ben] = sandbox.people.map(({ token }) => token);
  await new Browser().open(withdrawLinkOf(await enrol(await invite('p01'), 'ada')), { method: 'POST' });
  const { addAccount, addAccounts, removeAccount } = harness.commands;
  await removeAccount({ name: 'p01' });
  const people = [
    { line: 2, name: 'p01', token: ada ?? '', facts: {}, extra: {} },
    { line: 3, name: 'p02', token: ben ?? '', facts: {}, extra: {} },
  ];
  const add = async () => (await addAccounts({ people }, { emit: () => {}, signal: new AbortController().signal })).people;
  const reason = 'has withdrawn: ringneck account invite p01, or ringneck account login p01';
  expect((await add()).map(({ user_id, result, state, reason }) => [user_id, result, state, reason])).toEqual([
    ['p01', 'unchanged', 'removed', reason],
    ['p02', 'added', 'active', null],
  ]);
  expect(harness.app.secrets.names()).toEqual(['p02']);
  await expect(addAccount({ name: 'p01', token: ada ?? '' })).rejects.toThrow('the person of p01 has withdrawn');
});

test('with an account that is removed ends what its person agreed to, and their link says so', async () => {
  const { harness, invite, enrol, told } = await openEnrolment(folder, 'removed', shared);
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  await harness.commands.removeAccount({ name: 'p01' });
  expect(await harness.read('SELECT withdrawn_at IS NOT NULL FROM sync.consents')).toEqual([[true]]);
  const browser = new Browser();
  const pages = [await browser.open(link), await browser.open(link, { method: 'POST' })];
  expect(pages.map(({ status, title }) => [status, title])).toEqual([
    [200, 'Your data are not read any more'],
    [200, 'Your data are not read any more'],
  ]);
  expect([await harness.read('SELECT state, reason FROM sync.accounts'), told]).toEqual([[['removed', null]], []]);
});

test('who withdrew and is invited by another name is told that they are not read, and what to ask for', async () => {
  const { harness, invite, enrol, told } = await openEnrolment(folder, 'other-name', shared);
  await new Browser().open(withdrawLinkOf(await enrol(await invite('p01'), 'ada')), { method: 'POST' });
  const page = await enrol(await invite('p02'), 'ada');
  expect([page.status, page.title]).toEqual([409, 'You took part before']);
  expect(page.html).toContain('your data are not read now: you have withdrawn, or the access has ended');
  const problem =
    'the person who signed in is already p01, which is not read now, and nothing was stored: ringneck why p01; once they sign in as p01 they are read again';
  expect(told.at(-1)).toEqual({ reason: 'invitation_refused', user: 'p02', message: problem });
  expect(await harness.commands.listInvitations()).toMatchObject([{ user_id: 'p02', problem }]);
});

test('with who is erased goes what they agreed to, and their link', async () => {
  const { harness, invite, enrol } = await openEnrolment(folder, 'erased', shared);
  await enrol(await invite('p01'), 'ada');
  expect(await harness.commands.eraseAccount({ name: 'p01' })).toMatchObject({
    user_id: 'p01',
    found: [],
    removed: { 'sync.consents': 1, 'sync.links': 1 },
  });
});

test('with who is erased goes that they signed in by the invitation of somebody else', async () => {
  const { harness, invite, enrol } = await openEnrolment(folder, 'erased-twin', shared);
  await enrol(await invite('p01'), 'ada');
  await enrol(await invite('p02'), 'ada');
  expect(await harness.read('SELECT kind, user_id, problem FROM sync.links ORDER BY ALL')).toEqual([
    ['connect', 'p02', 'enrolled'],
    ['withdraw', 'p01', null],
  ]);
  expect(await harness.commands.eraseAccount({ name: 'p01' })).toMatchObject({ found: [], removed: { 'sync.links': 2 } });
});

test('a form of another site withdraws nobody', async () => {
  const { harness, invite, enrol } = await openEnrolment(folder, 'foreign', shared);
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const page = await new Browser().open(link, { method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } });
  expect([page.status, page.title]).toEqual([403, 'That did not come from this page']);
  expect(await harness.read('SELECT state FROM sync.accounts')).toEqual([['active']]);
});
