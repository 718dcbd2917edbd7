import { expect, test } from 'vitest';
import { Browser, openEnrolment, sharePlace, withdrawLinkOf } from '../../support/enrolment-harness.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const folder = tempFolder();
const shared = sharePlace(folder);
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
  expect(done.html).toContain('did not answer, so it still lists the access');
  expect(harness.app.secrets.names()).toEqual([]);
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

test('a withdrawal that was interrupted before the tokens were forgotten is done by the link', async () => {
  const { harness, invite, enrol } = await openEnrolment(folder, 'interrupted', shared);
  const link = withdrawLinkOf(await enrol(await invite('p01'), 'ada'));
  const { secrets } = harness.app;
  const remove = secrets.remove.bind(secrets);
  secrets.remove = () => {
    throw new Error('killed');
  };
  const browser = new Browser();
  expect((await browser.submit(await browser.open(link))).status).toBe(500);
  expect([await harness.read('SELECT state FROM sync.accounts'), secrets.names()]).toEqual([[['paused']], ['p01']]);
  secrets.remove = remove;
  expect((await browser.submit(await browser.open(link))).title).toBe('You have withdrawn');
  expect(secrets.names()).toEqual([]);
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
