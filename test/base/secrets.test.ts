import {
  copyFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RingneckError, UsageError } from '../../src/base/errors.ts';
import { openMirrorTokens } from '../../src/base/secrets/mirror-tokens.ts';
import { ensureSecretKey } from '../../src/base/secrets/secret-key.ts';
import { Secrets } from '../../src/base/secrets/secrets.ts';

const KEY = 'a key of more than sixteen letters';
const SIGN_IN = {
  id: 'first',
  accessToken: 'access-1',
  refreshToken: 'refresh-1',
  expiresAt: 1_700_086_400_000,
  refreshedAt: 1_700_000_000_000,
  scopes: ['daily', 'spo2Daily'],
  previous: 'refresh-0',
};
let above: string;
let folder: string;
const inFolder = (name: string) => join(folder, name);
const modeOf = (path: string) => statSync(path).mode & 0o777;

beforeEach(() => {
  above = mkdtempSync(join(tmpdir(), 'ringneck-test-'));
  folder = join(above, 'data');
});
afterEach(() => rmSync(above, { recursive: true }));

describe('account tokens', () => {
  test('reading makes nothing', () => {
    const secrets = new Secrets({ folder });
    expect(secrets.find('anna')).toBeUndefined();
    expect(secrets.names()).toEqual([]);
    secrets.remove('anna');
    expect(readdirSync(above)).toEqual([]);
  });

  test('what is put is found again, by another instance too, and nowhere in clear', () => {
    const secrets = new Secrets({ folder });
    secrets.put('bert', 'token-of-bert');
    secrets.put('anna', 'token-of-anna');
    secrets.put('anna', 'newer token of anna – ünïcode');
    secrets.put('__proto__', 'token-of-proto');
    for (const opened of [secrets, new Secrets({ folder })]) {
      expect(opened.names()).toEqual(['__proto__', 'anna', 'bert']);
      expect(opened.find('anna')).toBe('newer token of anna – ünïcode');
      expect(opened.find('bert')).toBe('token-of-bert');
      expect(opened.find('__proto__')).toBe('token-of-proto');
      expect(opened.find('constructor')).toBeUndefined();
    }
    const stored = readFileSync(inFolder('accounts.secret'), 'utf8');
    expect(stored).not.toMatch(/token-of|newer/);
    expect(Buffer.from(stored, 'base64').toString('latin1')).not.toMatch(/token-of|newer/);

    secrets.remove('bert');
    expect(new Secrets({ folder }).names()).toEqual(['__proto__', 'anna']);
  });

  test('every file is its owner’s alone', () => {
    new Secrets({ folder }).put('anna', 'token');
    openMirrorTokens(folder).create('anna');
    expect(modeOf(folder)).toBe(0o700);
    expect(readdirSync(folder).sort()).toEqual(['accounts.secret', 'mirror-tokens.json', 'secret.key']);
    for (const name of readdirSync(folder)) expect(modeOf(inFolder(name)), name).toBe(0o600);
  });

  test('a token is for the address that it was given for, whatever is done to the file', () => {
    const here = new Secrets({ folder, key: KEY, address: 'https://one.example' });
    const there = new Secrets({ folder, key: KEY, address: 'https://two.example' });
    here.put('anna', 'token-of-anna');
    expect([here.find('anna'), there.find('anna'), there.findOfAny('anna')]).toEqual(['token-of-anna', undefined, 'token-of-anna']);
    expect([here.whyMissing('anna'), there.whyMissing('anna'), here.whyMissing('bert')]).toEqual([
      undefined,
      'the token was given for https://one.example, and this service is https://two.example: ringneck account add anna ' +
        '(with --keep-token: the same token for this address)',
      'no token: ringneck account add bert',
    ]);
    for (const forged of ['"https://two.example"', undefined]) {
      const text = readFileSync(inFolder('accounts.secret'), 'utf8');
      writeFileSync(inFolder('accounts.secret'), text.replace(/,\s*"https:\/\/one.example"/, forged ? `, ${forged}` : ''));
      expect(() => there.find('anna')).toThrow(/is damaged: the token of anna cannot be read/);
      writeFileSync(inFolder('accounts.secret'), text);
    }
  });

  test('a token that was sealed without an address belongs to the first at which it is used', () => {
    const bound: string[] = [];
    const open = (address?: string) => new Secrets({ folder, key: KEY, address, onBound: name => bound.push(name) });
    open().put('anna', 'token-of-anna');
    open().put('bert', 'token-of-bert');
    const text = readFileSync(inFolder('accounts.secret'), 'utf8');
    writeFileSync(inFolder('accounts.secret'), text.replace('"format": 2', '"format": 1'));
    expect([open().find('anna'), open('https://one.example').whyMissing('anna'), bound]).toEqual(['token-of-anna', undefined, []]);
    expect([open('https://one.example').find('anna'), bound]).toEqual(['token-of-anna', ['anna']]);
    expect(open('https://two.example').find('anna')).toBeUndefined();
    expect([open('https://one.example').find('anna'), bound]).toEqual(['token-of-anna', ['anna']]);
    expect(open('https://two.example').find('bert')).toBe('token-of-bert');
  });

  test('with a key that is made here the file is of format 3, and the key may be given as a text later; a key of one’s own is stretched', () => {
    new Secrets({ folder }).put('anna', 'token-of-anna');
    new Secrets({ folder }).put('bert', 'token-of-bert');
    const text = readFileSync(inFolder('accounts.secret'), 'utf8');
    expect(text).toContain('"format": 3');
    const key = readFileSync(inFolder('secret.key'), 'utf8').trim();
    rmSync(inFolder('secret.key'));
    expect(new Secrets({ folder, key }).find('anna')).toBe('token-of-anna');
    writeFileSync(inFolder('accounts.secret'), text.replace('"format": 3', '"format": 2'));
    expect(() => new Secrets({ folder, key }).find('anna')).toThrow(/RINGNECK_SECRET_KEY is not the key that/);

    rmSync(inFolder('accounts.secret'));
    writeFileSync(inFolder('secret.key'), 'what a person chose\n');
    new Secrets({ folder }).put('anna', 'token-of-anna');
    expect(readFileSync(inFolder('accounts.secret'), 'utf8')).toContain('"format": 2');
    expect(new Secrets({ folder }).find('anna')).toBe('token-of-anna');
  });

  test('a sign-in is sealed, and for the address at which it was made', () => {
    const here = new Secrets({ folder, address: 'https://one.example' });
    const there = new Secrets({ folder, address: 'https://two.example' });
    here.putSignIn('anna', SIGN_IN);
    expect([here.find('anna'), here.findSignIn('anna'), here.hasSignIn('anna')]).toEqual(['access-1', SIGN_IN, true]);
    expect([there.find('anna'), there.findSignIn('anna'), there.hasSignIn('anna')]).toEqual([undefined, undefined, true]);
    expect(there.listOfAny('anna')).toEqual(['access-1', 'refresh-1', 'refresh-0']);
    expect(there.whyMissing('anna')).toBe(
      'the sign-in was made at https://one.example, and this service is https://two.example: ringneck account login anna',
    );
    expect(readFileSync(inFolder('accounts.secret'), 'utf8')).not.toMatch(/access-1|refresh|spo2Daily/);
    for (const forged of [/,\s*"sign-in"/, /one(?=.example)/]) {
      const text = readFileSync(inFolder('accounts.secret'), 'utf8');
      writeFileSync(inFolder('accounts.secret'), text.replace(forged, forged.source.startsWith('one') ? 'two' : ''));
      const opened = forged.source.startsWith('one') ? there : here;
      expect(() => opened.find('anna')).toThrow(/is damaged: the (token|sign-in) of anna cannot be read/);
      writeFileSync(inFolder('accounts.secret'), text);
    }
    here.put('anna', 'token-of-anna');
    expect([here.find('anna'), here.findSignIn('anna'), here.hasSignIn('anna')]).toEqual(['token-of-anna', undefined, false]);
  });

  test('a sign-in with what a later version has added is named, with what to do, and nobody else’s is kept from being used', () => {
    const secrets = new Secrets({ folder, address: 'https://one.example' });
    secrets.putSignIn('anna', { ...SIGN_IN, ...{ later: 1 } });
    secrets.putSignIn('bert', { ...SIGN_IN, id: 'of bert', accessToken: 'access-b' });
    const said =
      'the sign-in of anna was written by another version of ringneck, which this one does not understand: go back to that one, or ringneck account login anna';
    for (const use of [() => secrets.find('anna'), () => secrets.listOfAny('anna')]) expect(use).toThrow(new RingneckError(said));
    expect([secrets.whyUnusable('anna'), secrets.find('bert')]).toEqual([said, 'access-b']);
    expect(secrets.findOwner(['access-b'], ['anna', 'bert'])).toBe('bert');
    secrets.end('anna', 1_000);
    expect(secrets.listEnded()).toMatchObject([{ name: 'anna', signIn: undefined, isGivenUp: false }]);
  });

  test('a token of the same sign-in is the same after a refresh, one of another sign-in, person or command is not', () => {
    const secrets = new Secrets({ folder, address: 'https://one.example' });
    secrets.putSignIn('anna', SIGN_IN);
    secrets.putSignIn('anna', { ...SIGN_IN, accessToken: 'access-2', refreshToken: 'refresh-2' });
    expect([secrets.isSame('anna', 'access-1'), secrets.isSame('anna', 'access-2'), secrets.isSame('bert', 'access-1')]).toEqual([
      true,
      true,
      false,
    ]);
    expect(secrets.findHolder('access-1')).toMatchObject({ name: 'anna', signIn: { accessToken: 'access-2' } });
    secrets.putSignIn('anna', { ...SIGN_IN, id: 'another', accessToken: 'access-3' });
    expect([secrets.isSame('anna', 'access-2'), secrets.isSame('anna', 'access-3')]).toEqual([false, true]);
    secrets.put('anna', 'token-of-anna');
    expect([secrets.isSame('anna', 'access-3'), secrets.isSame('anna', 'token-of-anna')]).toEqual([false, true]);
    secrets.put('anna', 'token-of-somebody');
    expect(secrets.isSame('anna', 'token-of-anna')).toBe(false);
    expect(secrets.findHolder('access-3')).toBeUndefined();
  });

  test('a given key makes no file of its own', () => {
    new Secrets({ folder, key: KEY }).put('anna', 'token');
    expect(readdirSync(folder)).toEqual(['accounts.secret']);
    expect(new Secrets({ folder, key: KEY }).find('anna')).toBe('token');
  });

  test('where the file is a link, to an encrypted disk perhaps, what is written goes to where it leads', () => {
    const disk = mkdtempSync(join(above, 'disk-'));
    mkdirSync(folder, { mode: 0o700 });
    symlinkSync(join(disk, 'accounts.secret'), inFolder('accounts.secret'));
    const secrets = new Secrets({ folder, key: KEY });
    secrets.put('anna', 'token');
    secrets.put('bert', 'token-2');
    secrets.remove('anna');
    expect(lstatSync(inFolder('accounts.secret')).isSymbolicLink()).toBe(true);
    expect(readdirSync(disk)).toEqual(['accounts.secret']);
    expect(new Secrets({ folder, key: KEY }).names()).toEqual(['bert']);
  });

  test('a change by another process is seen', () => {
    const reader = new Secrets({ folder, key: KEY });
    const writer = new Secrets({ folder, key: KEY });
    writer.put('anna', 'token-1');
    expect(reader.find('anna')).toBe('token-1');
    writer.put('anna', 'token-2');
    expect(reader.find('anna')).toBe('token-2');
    reader.put('bert', 'token-3');
    expect(writer.names()).toEqual(['anna', 'bert']);
  });

  test('a wrong key is refused by name, for reading and for writing, and the file stays', () => {
    new Secrets({ folder, key: KEY }).put('anna', 'token');
    const before = readFileSync(inFolder('accounts.secret'));
    const other = new Secrets({ folder, key: 'another key of sixteen' });
    expect(() => other.find('anna')).toThrow(UsageError);
    expect(() => other.find('anna')).toThrow(/^RINGNECK_SECRET_KEY is not the key that .*accounts\.secret was sealed with/);
    expect(() => other.put('bert', 'token')).toThrow(/^RINGNECK_SECRET_KEY is not the key/);
    expect(readFileSync(inFolder('accounts.secret'))).toEqual(before);
  });

  test('another secret.key is refused by name, a missing one is not made anew', () => {
    const secrets = new Secrets({ folder });
    secrets.put('anna', 'token');
    writeFileSync(inFolder('secret.key'), 'some other key entirely\n');
    expect(() => new Secrets({ folder }).find('anna')).toThrow(/secret\.key is not the key that .*accounts\.secret was sealed with/);
    rmSync(inFolder('secret.key'));
    for (const act of [() => new Secrets({ folder }).find('anna'), () => new Secrets({ folder }).put('bert', 'token')]) {
      expect(act).toThrow(/sealed with a key that is missing: set RINGNECK_SECRET_KEY to it, or put .*secret\.key back/);
    }
    expect(readdirSync(folder)).toEqual(['accounts.secret']);
    writeFileSync(inFolder('secret.key'), 'short\n');
    expect(() => new Secrets({ folder }).find('anna')).toThrow(/secret\.key is damaged/);
  });

  test.each(['', '{"format":1', '{"format":2,"accounts":[]}', 'null'])(
    'a damaged file (%j) is an error that names it, and is not overwritten',
    content => {
      new Secrets({ folder, key: KEY }).put('anna', 'token');
      writeFileSync(inFolder('accounts.secret'), content);
      const secrets = new Secrets({ folder, key: KEY });
      for (const act of [() => secrets.find('anna'), () => secrets.names(), () => secrets.put('anna', 'x'), () => secrets.remove('anna')]) {
        expect(act).toThrow(/accounts\.secret cannot be read/);
      }
      expect(readFileSync(inFolder('accounts.secret'), 'utf8')).toBe(content);
    },
  );

  test('a value that was altered, or moved to another name, is not accepted', () => {
    const secrets = new Secrets({ folder, key: KEY });
    secrets.put('anna', 'token-of-anna');
    secrets.put('bert', 'token-of-bert');
    const stored = JSON.parse(readFileSync(inFolder('accounts.secret'), 'utf8')) as { accounts: [string, string][] };
    const [anna, bert] = stored.accounts.map(([, sealed]) => sealed);
    const flipped = Buffer.from(bert!, 'base64');
    flipped[flipped.length - 1]! ^= 1;
    stored.accounts = [
      ['bert', anna!],
      ['anna', flipped.toString('base64')],
      ['carl', bert!.slice(0, 12)],
    ];
    writeFileSync(inFolder('accounts.secret'), JSON.stringify(stored));
    for (const name of ['anna', 'bert', 'carl']) {
      expect(() => secrets.find(name)).toThrow(`the token of ${name} cannot be read. Give it again: ringneck account add ${name}`);
    }
    secrets.put('bert', 'given again');
    expect(secrets.find('bert')).toBe('given again');
  });

  test('a copy of the folder without the key is of no use', () => {
    new Secrets({ folder }).put('anna', 'token');
    const elsewhere = mkdtempSync(join(above, 'copy-'));
    copyFileSync(inFolder('accounts.secret'), join(elsewhere, 'accounts.secret'));
    expect(() => new Secrets({ folder: elsewhere }).find('anna')).toThrow(/a key that is missing/);
  });
});

test('the generated key is made once: who comes second takes the first one’s', () => {
  const first = ensureSecretKey(folder, undefined);
  expect(Buffer.from(first, 'base64url')).toHaveLength(32);
  expect(ensureSecretKey(folder, undefined)).toBe(first);
  expect(ensureSecretKey(folder, KEY)).toBe(KEY);
  expect(readdirSync(folder)).toEqual(['secret.key']);
});

describe('mirror tokens', () => {
  test('a token finds its account; only its hash is stored', () => {
    const tokens = openMirrorTokens(folder);
    const [anna, bert] = [tokens.create('anna'), tokens.create('bert')];
    expect(openMirrorTokens(folder).findAccount(anna)).toBe('anna');
    expect(tokens.findAccount(bert)).toBe('bert');
    expect(tokens.findAccount(`${anna}x`)).toBeUndefined();
    expect(tokens.findAccount('')).toBeUndefined();
    const stored = readFileSync(inFolder('mirror-tokens.json'), 'utf8');
    expect(stored).not.toContain(anna);
    expect(stored).not.toContain(anna.slice(4));
  });

  test('a new token replaces the former one, a removed one is gone, for who has the file open too', () => {
    const [tokens, mirror] = [openMirrorTokens(folder), openMirrorTokens(folder)];
    const former = tokens.create('anna');
    expect(mirror.findAccount(former)).toBe('anna');
    const token = tokens.create('anna');
    expect(mirror.findAccount(former)).toBeUndefined();
    expect(mirror.findAccount(token)).toBe('anna');
    tokens.remove('anna');
    expect(mirror.findAccount(token)).toBeUndefined();
  });

  test('a damaged file is an error that names it', () => {
    openMirrorTokens(folder).create('anna');
    writeFileSync(inFolder('mirror-tokens.json'), '{"format":1,"tokens":[{"name":"anna","sha256":"short"}]}');
    expect(() => openMirrorTokens(folder).findAccount('x')).toThrow(/mirror-tokens\.json cannot be read/);
    expect(() => openMirrorTokens(folder).create('bert')).toThrow(/mirror-tokens\.json cannot be read/);
  });
});

test('a sign-in that has ended is read by nobody, and is kept through another key and another name until it is taken back', () => {
  const address = 'https://service.example';
  const open = (key: string, at?: string) => new Secrets({ folder, key, address: at ?? address });
  const secrets = open(KEY);
  secrets.putSignIn('ada', SIGN_IN);
  secrets.put('ben', 'bens-token');
  secrets.end('ada', 1_000);
  secrets.end('ben', 1_000);
  expect([secrets.find('ada'), secrets.findSignIn('ada'), secrets.findOfAny('ada'), secrets.hasSignIn('ada'), secrets.names()]).toEqual([
    undefined,
    undefined,
    undefined,
    false,
    [],
  ]);
  const ended = { name: 'ada', at: 1_000, signIn: SIGN_IN, isGivenUp: false, isOfFormer: false, tries: 0 };
  expect(open(KEY).listEnded()).toEqual([ended]);
  expect(open(KEY, 'https://other.example').listEnded()).toEqual([{ ...ended, signIn: undefined }]);

  secrets.putSignIn('ada', { ...SIGN_IN, id: 'second', accessToken: 'access-2' });
  const next = 'another key of more than sixteen letters';
  secrets.addKey(KEY, next);
  expect([open(KEY).listEnded(), open(next).listEnded()].map(([ended]) => ended?.signIn)).toEqual([SIGN_IN, SIGN_IN]);
  open(next).keepKey(next);
  expect([open(next).listEnded(), open(next).find('ada')]).toEqual([[ended], 'access-2']);

  const moved = open(next);
  moved.copy('ada', 'p01');
  moved.copy('ada', 'p01');
  moved.forget('ada');
  expect([moved.listEnded(), moved.names()]).toEqual([[{ ...ended, name: 'p01' }], ['p01']]);
  moved.forgetRenewals();
  expect(moved.listEnded()).toEqual([{ name: 'p01', at: 1_000, signIn: undefined, isGivenUp: true, isOfFormer: false, tries: 0 }]);
  moved.removeEnded({ name: 'p01', at: 1_000 });
  expect(moved.listEnded()).toEqual([]);
});

test('what has ended of who had a name before stays theirs, through a renewal, another key and another name', () => {
  const open = (key: string) => new Secrets({ folder, key, address: 'https://service.example' });
  const secrets = open(KEY);
  secrets.putSignIn('ada', SIGN_IN);
  secrets.end('ada', 1_000);
  secrets.leaveToNext('ada');
  secrets.renewEnded({ name: 'ada', at: 1_000 }, { ...SIGN_IN, accessToken: 'access-2' });
  secrets.putSignIn('ada', { ...SIGN_IN, id: 'next' });
  secrets.end('ada', 2_000);
  const next = 'another key of more than sixteen letters';
  secrets.addKey(KEY, next);
  open(next).keepKey(next);
  const moved = open(next);
  moved.copy('ada', 'p01');
  moved.forget('ada');
  moved.emptyEnded({ name: 'p01', at: 1_000 });
  expect(moved.listEnded()).toEqual([
    { name: 'p01', at: 1_000, signIn: undefined, isGivenUp: true, isOfFormer: true, tries: 0 },
    { name: 'p01', at: 2_000, signIn: { ...SIGN_IN, id: 'next' }, isGivenUp: false, isOfFormer: false, tries: 0 },
  ]);
});

test('what has ended and was sealed with another key stays as it is in a copy, keeps its name, and is read once that key is back', () => {
  const open = (key: string) => new Secrets({ folder, key, address: 'https://service.example' });
  const first = open(KEY);
  first.putSignIn('ada', SIGN_IN);
  first.end('ada', 1_000);
  const second = open('another key of more than sixteen letters');
  second.acceptKey();
  second.putSignIn('ben', SIGN_IN);
  second.end('ben', 2_000);
  second.forgetRenewals();
  expect(first.listEnded().map(({ name, signIn, isGivenUp }) => [name, signIn, isGivenUp])).toEqual([
    ['ben', undefined, true],
    ['ada', SIGN_IN, false],
  ]);
  expect(() => second.copy('ada', 'p01')).toThrow('was sealed with another key than there is now: put that one back');
  expect(first.listEnded().map(({ name, signIn }) => [name, signIn])).toContainEqual(['ada', SIGN_IN]);
  second.emptyEnded({ name: 'ada', at: 1_000 });
  second.copy('ada', 'p01');
  second.forget('ada');
  expect(second.listEnded().map(({ name, isGivenUp }) => [name, isGivenUp])).toEqual([
    ['ben', true],
    ['p01', true],
  ]);
});

test('what a sign-in that has ended was renewed to is kept in its place, also where that is gone meanwhile', () => {
  const secrets = new Secrets({ folder, key: KEY, address: 'https://service.example' });
  const ended = { name: 'ada', at: 1_000 };
  secrets.putEnded('ada', SIGN_IN, 1_000);
  secrets.renewEnded(ended, { ...SIGN_IN, accessToken: 'access-2' });
  expect(secrets.listEnded()).toEqual([
    { ...ended, signIn: { ...SIGN_IN, accessToken: 'access-2' }, isGivenUp: false, isOfFormer: false, tries: 0 },
  ]);
  secrets.removeEnded(ended);
  secrets.renewEnded(ended, { ...SIGN_IN, accessToken: 'access-3' });
  expect(secrets.listEnded()).toEqual([
    { ...ended, signIn: { ...SIGN_IN, accessToken: 'access-3' }, isGivenUp: false, isOfFormer: false, tries: 0 },
  ]);
});

test('two sign-ins of one account that end in one moment are two, in one write with the next', () => {
  const secrets = new Secrets({ folder, key: KEY, address: 'https://service.example' });
  secrets.putSignIn('ada', SIGN_IN);
  secrets.putSignIn('ada', { ...SIGN_IN, id: 'second' }, 1_000);
  secrets.end('ada', 1_000);
  secrets.putEnded('ada', { ...SIGN_IN, id: 'third' }, 1_000);
  expect(secrets.listEnded().map(({ at, signIn }) => [at, signIn?.id])).toEqual([
    [1_000, SIGN_IN.id],
    [1_001, 'second'],
    [1_002, 'third'],
  ]);
  secrets.putSignIn('ada', SIGN_IN);
  secrets.end('ada', 1_000, { isKept: false });
  expect(secrets.listEnded().at(-1)).toEqual({ name: 'ada', at: 1_003, signIn: undefined, isGivenUp: true, isOfFormer: false, tries: 0 });
});
