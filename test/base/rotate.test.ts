import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ensureFolder } from '../../src/base/files.ts';
import { type KeyHolder, rotateKey } from '../../src/base/secrets/rotate.ts';
import { Secrets } from '../../src/base/secrets/secrets.ts';
import { clientKeyHolder, openWebhookClient } from '../../src/service/webhooks/client.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

const ADDRESS = 'https://one.example';
const [FIRST, SECOND, THIRD] = ['the first of three keys', 'the second of three keys', 'the third of three keys'];
const SIGN_IN = {
  id: 'first',
  accessToken: 'access-1',
  refreshToken: 'refresh-1',
  expiresAt: 1_700_086_400_000,
  refreshedAt: 1_700_000_000_000,
  scopes: ['daily', 'spo2Daily'],
  previous: null,
};

/** When the process is gone: before or after a step of one of two files; between the second and the third the key is replaced. */
const KILLS = [
  ['before', 1],
  ['after', 1],
  ['after', 2],
  ['before', 3],
  ['after', 3],
] as const;

const keyIn = (data: string) => readFileSync(join(data, 'secret.key'), 'utf8').trim();
const opened = new Map<string, Secrets>();
const open = (data: string, key?: string) => {
  const secrets = opened.get(`${data} ${key}`) ?? new Secrets({ folder: data, key, address: ADDRESS });
  opened.set(`${data} ${key}`, secrets);
  return secrets;
};

interface Rotation {
  given?: string;
  former?: string;
  kill?: readonly [when: 'before' | 'after', step: number];
  /** What is sealed beside the tokens, where that is not what `sealAll` has sealed. */
  beside?: KeyHolder;
}

/** Changes the key of what `sealAll` has sealed. */
function rotate(data: string, { given, former, kill, beside }: Rotation = {}) {
  let step = 0;
  const within = <Result>(work: () => Result): Result => {
    step++;
    if (kill?.[0] === 'before' && kill[1] === step) throw new Error('killed');
    const result = work();
    if (kill?.[0] === 'after' && kill[1] === step) throw new Error('killed');
    return result;
  };
  const killable = (holder: KeyHolder): KeyHolder => ({
    isOpenedBy: key => holder.isOpenedBy(key),
    addKey: (before, next) => within(() => holder.addKey(before, next)),
    keepKey: key => within(() => holder.keepKey(key)),
    listClosed: key => holder.listClosed(key),
  });
  return rotateKey({ folder: data, given, holders: [open(data, given), beside ?? otherOf(data, given)].map(killable), former });
}

/** Another file that is sealed with the key of a folder. */
const otherOf = (data: string, key?: string) => open(join(data, 'other'), key ?? keyIn(data));

/** A folder in which a token and a sign-in are sealed, and a token in another file. */
function sealAll(name: string, key?: string) {
  const data = join(folder, name);
  const secrets = open(data, key);
  secrets.put('ada', 'token-of-ada');
  secrets.putSignIn('ben', SIGN_IN);
  otherOf(data, key).put('eve', 'token-of-eve');
  return { data, content: { ada: 'token-of-ada', ben: SIGN_IN, digest: secrets.digest('x'), eve: 'token-of-eve' } };
}

const contentOf = (data: string, key?: string) => {
  const secrets = open(data, key);
  const eve = otherOf(data, key).find('eve');
  return { ada: secrets.find('ada'), ben: secrets.findSignIn('ben'), digest: secrets.digest('x'), eve };
};

test('all is sealed with a new key, the former one opens nothing, and what was known by a digest stays known', () => {
  const { data, content } = sealAll('new');
  const former = keyIn(data);
  expect(rotate(data)).toEqual({ key: 'secret.key', unreadable: [], finished: false });
  expect(contentOf(data)).toEqual(content);
  expect(keyIn(data)).not.toBe(former);
  expect(() => open(data, former).find('ada')).toThrow(/^RINGNECK_SECRET_KEY is not the key/);
  rotate(data);
  expect(contentOf(data)).toEqual(content);
});

test.each(KILLS)('killed %s step %i all can be opened, and another call finishes it', (when, step) => {
  const { data, content } = sealAll(`killed-${when}-${step}`);
  const former = keyIn(data);
  expect(() => rotate(data, { kill: [when, step] })).toThrow('killed');
  expect(contentOf(data)).toEqual(content);
  // Who goes on meanwhile loses nothing.
  open(data).put('cleo', 'token-of-cleo');
  open(data).putSignIn('ben', { ...SIGN_IN, accessToken: 'access-2' });
  rotate(data);
  expect(contentOf(data)).toEqual({ ...content, ben: { ...SIGN_IN, accessToken: 'access-2' } });
  expect([open(data).find('cleo'), open(data).names(), open(data).namesElsewhere()]).toEqual(['token-of-cleo', ['ada', 'ben', 'cleo'], []]);
  expect(() => open(data, former).find('ada')).toThrow(/^RINGNECK_SECRET_KEY is not the key/);
});

test('the client secret of a sandbox is opened by either key, then by the next one alone', () => {
  const service = join(folder, 'service');
  ensureFolder(service);
  const { secret } = openWebhookClient(service, FIRST, false);
  const holder = clientKeyHolder(service);
  expect([holder.isOpenedBy(FIRST), holder.isOpenedBy(SECOND), holder.keepKey(FIRST)]).toEqual([true, false, false]);
  holder.addKey(FIRST, SECOND);
  expect([FIRST, SECOND].map(key => openWebhookClient(service, key, false).secret)).toEqual([secret, secret]);
  expect(holder.keepKey(SECOND)).toBe(true);
  expect(openWebhookClient(service, SECOND, false).secret).toBe(secret);
  expect(() => openWebhookClient(service, FIRST, false)).toThrow('was sealed with another key');
});

/** A folder in which a token and the client secret of a sandbox are sealed. */
function sealClient(name: string, key?: string) {
  const data = join(folder, name);
  open(data, key).put('ada', 'token-of-ada');
  const service = join(data, 'service');
  ensureFolder(service);
  const secretBy = (text: string) => openWebhookClient(service, text, false).secret;
  return { data, path: join(service, 'client.json'), beside: clientKeyHolder(service), secret: secretBy(key ?? keyIn(data)), secretBy };
}

test('killed a second time, before and after the key is replaced, the client secret is opened by the key that there is', () => {
  const { data, beside, secret, secretBy } = sealClient('twice');
  const former = keyIn(data);
  expect(() => rotate(data, { beside, kill: ['before', 3] })).toThrow('killed');
  expect(keyIn(data)).not.toBe(former);
  for (const step of [2, 3]) {
    expect(() => rotate(data, { beside, kill: ['after', step] })).toThrow('killed');
    expect([secretBy(keyIn(data)), open(data).find('ada')]).toEqual([secret, 'token-of-ada']);
  }
  rotate(data, { beside });
  expect(secretBy(keyIn(data))).toBe(secret);
  expect(() => secretBy(former)).toThrow('was sealed with another key');
});

test('a client secret that the former key alone opens is told, until that key is given', () => {
  const { data, path, beside, secret, secretBy } = sealClient('behind', FIRST);
  expect(() => rotate(data, { given: SECOND, former: FIRST, beside, kill: ['after', 1] })).toThrow('killed');
  const report = { key: 'RINGNECK_SECRET_KEY', unreadable: [path], finished: false };
  expect([1, 2].map(() => rotate(data, { given: SECOND, beside }))).toEqual([report, report]);
  expect(rotate(data, { given: SECOND, former: FIRST, beside })).toEqual({ ...report, unreadable: [] });
  expect([secretBy(SECOND), open(data, SECOND).find('ada')]).toEqual([secret, 'token-of-ada']);
});

test('a client secret that was damaged before is told', () => {
  const { data, path, beside } = sealClient('damaged-client');
  const stored = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, JSON.stringify({ ...stored, secret: Buffer.alloc(60).toString('base64') }));
  expect(rotate(data, { beside })).toEqual({ key: 'secret.key', unreadable: [path], finished: false });
});

test.each([
  [`  ${FIRST} `, `  ${FIRST} \n`],
  [`${FIRST}\n`, FIRST],
  [FIRST, ` ${FIRST}\r\n`],
])('the former key %j is taken as %j', (former, typed) => {
  const { data, content } = sealAll(JSON.stringify([former, typed]), former);
  expect(rotate(data, { given: SECOND, former: typed })).toMatchObject({ unreadable: [] });
  expect(contentOf(data, SECOND)).toEqual(content);
});

test('where the key is RINGNECK_SECRET_KEY it says what to set before the former one is useless, and takes that one then', () => {
  const { data, content } = sealAll('given', FIRST);
  expect(() => rotate(data, { given: FIRST })).toThrow(
    /^RINGNECK_SECRET_KEY is the key that all is sealed with. To change it end ringneck up/,
  );
  expect(() => rotate(data, { given: SECOND })).toThrow(/opens nothing in .*: give the key of before: ringneck key rotate --former$/);
  expect(() => rotate(data, { given: SECOND, former: THIRD })).toThrow(/the key that was given opens nothing/);
  expect(() => rotate(data, { given: FIRST, former: FIRST })).toThrow('is not a former one: RINGNECK_SECRET_KEY holds it now');
  expect(contentOf(data, FIRST)).toEqual(content);
  expect(() => rotate(data, { given: SECOND, former: FIRST, kill: ['after', 2] })).toThrow('killed');
  expect(contentOf(data, SECOND)).toEqual(content);
  expect(rotate(data, { given: SECOND })).toEqual({ key: 'RINGNECK_SECRET_KEY', unreadable: [], finished: true });
  expect(contentOf(data, SECOND)).toEqual(content);
  expect(() => open(data, FIRST).find('ada')).toThrow(/^RINGNECK_SECRET_KEY is not the key/);
  expect(() => rotate(data, { given: SECOND })).toThrow('RINGNECK_SECRET_KEY is the key that all is sealed with');
});

test('a key moves from secret.key to RINGNECK_SECRET_KEY, and back', () => {
  const { data, content } = sealAll('moved');
  expect(rotate(data, { given: FIRST })).toMatchObject({ key: 'RINGNECK_SECRET_KEY' });
  expect(contentOf(data, FIRST)).toEqual(content);
  expect(() => rotate(data)).toThrow(/secret\.key opens nothing in .*: give the key of before/);
  expect(rotate(data, { former: FIRST })).toMatchObject({ key: 'secret.key' });
  expect(contentOf(data)).toEqual(content);
});

test('a key that was lost and is found again opens what was not given again meanwhile', () => {
  const { data } = sealAll('found', FIRST);
  const secrets = open(data, SECOND);
  secrets.acceptKey();
  secrets.put('ada', 'another-token');
  expect(rotate(data, { given: SECOND, former: FIRST })).toMatchObject({ unreadable: [] });
  expect([secrets.find('ada'), secrets.findSignIn('ben'), secrets.namesElsewhere()]).toEqual(['another-token', SIGN_IN, []]);
});

test('what was damaged before is told by name, and stays until it is given again', () => {
  const { data } = sealAll('damaged');
  const path = join(data, 'accounts.secret');
  const stored = JSON.parse(readFileSync(path, 'utf8'));
  stored.accounts[0][1] = stored.accounts[1][1];
  writeFileSync(path, JSON.stringify(stored));
  expect(rotate(data)).toMatchObject({ unreadable: ['ada'] });
  expect([open(data).names(), open(data).findSignIn('ben')]).toEqual([['ada', 'ben'], SIGN_IN]);
  expect(open(data).whyMissing('ada')).toContain('ringneck account add ada');
});

test('where nothing is sealed there is no key to change', () => {
  const data = join(folder, 'empty');
  ensureFolder(data);
  expect(() => rotateKey({ folder: data, given: undefined, holders: [open(data)] })).toThrow(
    /^nothing is sealed in .*empty yet, so there is no key to change$/,
  );
});
