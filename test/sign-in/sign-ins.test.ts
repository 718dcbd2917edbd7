import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { TryLaterError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import { Secrets } from '../../src/base/secrets/secrets.ts';
import type { SignIn } from '../../src/base/secrets/sign-in.ts';
import { SignInError } from '../../src/sign-in/error.ts';
import { createAuthorizeRequest, OAuthClient } from '../../src/sign-in/oauth.ts';
import { beginSignIn, dueAt, SignIns, type SignInsOptions } from '../../src/sign-in/sign-ins.ts';
import { useClocks } from '../support/clocks.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { type AuthorizationServer, SCOPES, startAuthorizationServer } from './authorization-server.ts';

const START = Date.parse('2025-03-01T12:00:00Z');
const LIFE_S = 120;
const folder = tempFolder();
let folders = 0;

const advance = useClocks(START);

interface Setting {
  server: AuthorizationServer;
  data: string;
  secrets: Secrets;
  oauth: OAuthClient;
  ended: string[];
  signIns: SignIns;
  /** What a process that begins on the same folder has. */
  restart(options?: Partial<SignInsOptions>): { secrets: Secrets; signIns: SignIns };
}

/** A folder in which ada has signed in. */
async function set(options: Partial<SignInsOptions> = {}): Promise<Setting> {
  const server = await startAuthorizationServer({ lifeS: LIFE_S });
  const data = join(folder, String(folders++));
  const oauth = new OAuthClient(server.settings);
  const ended: string[] = [];
  const restart: Setting['restart'] = more => {
    const secrets = new Secrets({ folder: data, address: 'http://127.0.0.1:1' });
    const onEnded = async (name: string) => void ended.push(name);
    const given = { secrets, now: Date.now, log: silentLog, openOAuth: async () => oauth, listKept: async () => secrets.names(), onEnded };
    const onEnding = () => undefined;
    const wait = (renewal: Promise<void>) => renewal;
    const ending = new AbortController().signal;
    const takeBack = async () => undefined;
    const ensureOurs = async () => undefined;
    const listOthers = async () => [];
    return {
      secrets,
      signIns: new SignIns({
        ...given,
        onEnding,
        wait,
        ending,
        takeBack,
        ensureOurs,
        listOthers,
        askWhose: async () => 'same',
        ...options,
        ...more,
      }),
    };
  };
  const { secrets, signIns } = restart();
  await signInAs(server, oauth, secrets, 'ada');
  return { server, data, secrets, oauth, ended, signIns, restart };
}

async function signInAs(server: AuthorizationServer, oauth: OAuthClient, secrets: Secrets, name: string) {
  const { url, verifier } = await createAuthorizeRequest(server.settings);
  const code = new URL(await server.visit(url)).searchParams.get('code') ?? '';
  const answer = await oauth.exchange({ code, verifier, redirectUrl: server.settings.redirectUrl });
  secrets.putSignIn(name, beginSignIn(`sign-in of ${name}`, answer, SCOPES, Date.now()));
}

test('a token is renewed once it has lived for half of its life, not before, and the one before is the same to who works with it', async () => {
  const { server, secrets, signIns } = await set();
  const first = secrets.find('ada')!;
  expect(secrets.findSignIn('ada')).toMatchObject({ expiresAt: START + 120_000, refreshedAt: START, scopes: SCOPES, previous: null });
  advance(59);
  await signIns.renewDue();
  expect(secrets.find('ada')).toBe(first);
  advance(14);
  await signIns.renewDue();
  const second = secrets.find('ada')!;
  expect(second).not.toBe(first);
  expect([secrets.isSame('ada', first), await signIns.current(first)]).toEqual([true, second]);
  expect(secrets.findSignIn('ada')).toMatchObject({ expiresAt: START + 73_000 + 120_000, refreshedAt: START + 73_000 });
  expect(await server.findPerson(second)).toBe('ada-1');
  expect(server.asked).toEqual(['authorization_code', 'refresh_token']);
});

test('that a token cannot be renewed is known at once, and told to somebody in the last quarter of its life', async () => {
  const told: string[] = [];
  const openOAuth = async () => {
    throw new SignInError('client', 'http://127.0.0.1:1/token does not take the client');
  };
  const { restart, signIns } = await set();
  expect(signIns.findTrouble('ada')).toBeUndefined();
  for (const seconds of [73, 18]) {
    advance(seconds);
    const next = restart({ openOAuth, onEnding: (name, reason) => void told.push(`${name}: ${reason}`) });
    await next.signIns.renewDue();
    expect(next.signIns.findTrouble('ada')).toBe('http://127.0.0.1:1/token does not take the client');
    expect(told).toHaveLength(seconds === 73 ? 0 : 1);
  }
  expect(told).toEqual(['ada: http://127.0.0.1:1/token does not take the client']);
  const { signIns: well } = restart();
  await well.renewDue();
  expect(well.findTrouble('ada')).toBeUndefined();
});

test('who begins can wait until what was due is on the disk, or could not be renewed', async () => {
  const { server, restart } = await set();
  advance(73);
  const { secrets, signIns } = restart();
  signIns.start();
  await signIns.firstLook();
  expect(secrets.findSignIn('ada')).toMatchObject({ expiresAt: START + 73_000 + 120_000, refreshedAt: START + 73_000 });
  expect(server.asked).toEqual(['authorization_code', 'refresh_token']);
  await signIns.close();

  const { signIns: failing } = restart({ listKept: () => Promise.reject(new Error('the ledger cannot be read')) });
  failing.start();
  await failing.firstLook();
  await failing.close();
});

test('nobody is asked for a pair that could not be told from what others have, which is tried again', async () => {
  let asked = 0;
  const listOthers = async () => {
    if (asked++ === 0) throw new Error('Out of Memory Error: could not allocate block of size 256.0 KiB');
    return [];
  };
  const { server, secrets, signIns, ended } = await set({ listOthers });
  const before = secrets.findSignIn('ada')!;
  advance(73);
  await signIns.renewDue();
  expect(signIns.findTrouble('ada')).toBe('Out of Memory Error: could not allocate block of size 256.0 KiB');
  expect([secrets.findSignIn('ada'), server.asked]).toEqual([before, ['authorization_code']]);
  advance(20);
  await signIns.renewDue();
  expect([ended, signIns.findTrouble('ada'), await server.findPerson(secrets.find('ada') ?? '')]).toEqual([[], undefined, 'ada-1']);
  expect(server.asked).toEqual(['authorization_code', 'refresh_token']);
});

test('between the answer of the service and the disk nothing is waited for', async () => {
  const { oauth, restart } = await set();
  let onDisk: string | undefined;
  const refresh = async (token: string) => {
    const answer = await oauth.refresh(token);
    setImmediate(() => {
      onDisk = secrets.findSignIn('ada')?.accessToken;
    });
    return answer;
  };
  const listOthers = () => new Promise<string[]>(resolve => setImmediate(() => setImmediate(() => resolve([]))));
  const { secrets, signIns } = restart({ openOAuth: async () => ({ tokenUrl: oauth.tokenUrl, refresh }), listOthers });
  const before = secrets.find('ada');
  advance(73);
  await signIns.renewDue();
  await new Promise(resolve => setImmediate(resolve));
  expect(onDisk).toBe(secrets.find('ada'));
  expect(onDisk).not.toBe(before);
});

test('a refresh token that another machine may have used is not used', async () => {
  const ensureOurs = async () => {
    throw new TryLaterError('another machine has taken the lake');
  };
  const { server, secrets, signIns } = await set({ ensureOurs });
  const before = secrets.findSignIn('ada')!;
  advance(73);
  await signIns.renewDue();
  expect(server.asked).toEqual(['authorization_code']);
  expect(secrets.findSignIn('ada')).toMatchObject({ accessToken: before.accessToken, refreshToken: before.refreshToken });
  expect(signIns.findTrouble('ada')).toBe('another machine has taken the lake');
});

test('accounts that signed in together are not renewed together', () => {
  const signIn = { accessToken: 'a', refreshToken: 'r', expiresAt: 100_000, refreshedAt: 0, scopes: [], previous: null };
  const times = Array.from({ length: 50 }, (_, index) => dueAt({ ...signIn, id: `sign-in ${index}` }));
  expect(Math.min(...times)).toBeGreaterThanOrEqual(50_000);
  expect(Math.max(...times)).toBeLessThan(60_000);
  expect(new Set(times.map(time => Math.floor(time / 1_000))).size).toBeGreaterThan(5);
  expect(dueAt({ ...signIn, id: 'x', expiresAt: null })).toBe(Number.POSITIVE_INFINITY);
});

test('the refresh token before is kept until the new access token was seen to work', async () => {
  const { secrets, signIns } = await set();
  const { refreshToken } = secrets.findSignIn('ada')!;
  advance(80);
  await signIns.renewDue();
  expect(secrets.findSignIn('ada')?.previous).toBe(refreshToken);
  signIns.accepted('a token of somebody else');
  expect(secrets.findSignIn('ada')?.previous).toBe(refreshToken);
  signIns.accepted(secrets.find('ada')!);
  expect(secrets.findSignIn('ada')?.previous).toBeNull();
});

test('many who meet an ended token in one moment have it renewed once', async () => {
  const { server, secrets, signIns } = await set();
  const token = secrets.find('ada')!;
  advance(LIFE_S + 1);
  const renewed = await Promise.all([...Array.from({ length: 20 }, () => signIns.current(token)), signIns.renewDue()]);
  expect(new Set(renewed)).toEqual(new Set([secrets.find('ada'), undefined]));
  expect(server.asked).toEqual(['authorization_code', 'refresh_token']);
});

test('a token that the service calls expired is renewed, one that was just renewed is not', async () => {
  const { server, secrets, signIns } = await set();
  const first = secrets.find('ada')!;
  expect(await signIns.renewRefused(first)).toBe(true);
  // Who still has the first one asks again with the second.
  expect(await signIns.renewRefused(first)).toBe(true);
  expect(await signIns.renewRefused(secrets.find('ada')!)).toBe(false);
  expect(await signIns.renewRefused('a token alone')).toBe(false);
  expect(server.asked).toEqual(['authorization_code', 'refresh_token']);
});

test('a sign-in that the service has ended is asked for once, and told', async () => {
  const { server, secrets, signIns, ended } = await set();
  const token = secrets.find('ada')!;
  await signInAs(server, new OAuthClient(server.settings), secrets, 'ben');
  await server.end(token);
  advance(LIFE_S + 1);
  await signIns.renewDue();
  expect(ended).toEqual(['ada']);
  expect(await signIns.current(token)).toBe(token);
  expect(await signIns.renewRefused(token)).toBe(false);
  expect(ended).toEqual(['ada']);
  expect(await server.findPerson(secrets.find('ben')!)).toBe('ada-1');
});

test('while the token address is away it is asked again after a while, longer each time, and the token is used for as long as it lives', async () => {
  const { server, secrets, signIns } = await set();
  const token = secrets.find('ada')!;
  server.fault = { status: 503, body: '' };
  advance(80);
  await signIns.renewDue();
  expect(await signIns.current(token)).toBe(token);
  advance(LIFE_S);
  for (let times = 0; times < 3; times++)
    await expect(signIns.current(token)).rejects.toMatchObject({ kind: 'unavailable', message: expect.stringContaining('answered 503') });
  server.fault = undefined;
  // Three more that were asked for found it too soon to ask.
  await expect(signIns.current(token)).rejects.toMatchObject({ kind: 'unavailable' });
  advance(10);
  expect(await server.findPerson(await signIns.current(token))).toBe('ada-1');
});

test('a disk that takes nothing keeps the sign-in: nobody is asked then, and what came meanwhile is written later', async () => {
  const { server, secrets, signIns } = await set();
  const put = secrets.putSignIn.bind(secrets);
  const full = vi.spyOn(secrets, 'putSignIn').mockImplementation(() => {
    throw new Error('no space left on device');
  });
  advance(80);
  await signIns.renewDue();
  expect(server.asked).toEqual(['authorization_code']);
  // There was place when it was tried.
  full.mockImplementationOnce(put);
  advance(LIFE_S);
  const token = secrets.find('ada')!;
  await expect(signIns.current(token)).rejects.toThrow('the renewed tokens of ada cannot be written: no space left on device');
  full.mockRestore();
  advance(20);
  expect(await server.findPerson(await signIns.current(token))).toBe('ada-1');
  expect(server.asked).toEqual(['authorization_code', 'refresh_token']);
});

test('who ends waits for the answer that it has asked for', async () => {
  const { secrets, signIns, restart } = await set();
  advance(80);
  const renewing = signIns.renewDue();
  await new Promise(setImmediate);
  await signIns.close();
  expect(restart().secrets.findSignIn('ada')?.refreshedAt).toBe(START + 80_000);
  await renewing;
  expect(secrets.findSignIn('ada')?.refreshedAt).toBe(START + 80_000);
});

test('who is about to end begins no renewal, calls no token dead for that, and takes what it has asked for', async () => {
  const ending = new AbortController();
  const { server, oauth, secrets, signIns } = await set({ ending: ending.signal });
  await signInAs(server, oauth, secrets, 'ben');
  const [adas, bens] = [secrets.find('ada')!, secrets.find('ben')!];
  advance(LIFE_S + 1);
  const renewing = signIns.current(adas);
  ending.abort();
  await signIns.renewDue();
  const refused = { kind: 'unavailable', message: 'the sign-in of ben is not renewed: ringneck is ending' };
  await expect(signIns.current(bens)).rejects.toMatchObject(refused);
  await expect(signIns.renewRefused(bens, true)).rejects.toMatchObject(refused);
  expect(await server.findPerson(await renewing)).toBe('ada-1');
  expect([server.asked, signIns.findTrouble('ben')]).toEqual([['authorization_code', 'authorization_code', 'refresh_token'], undefined]);
});

test('a sign-in that cannot be read keeps nobody else’s from being renewed, and a new one is not held up by the failures of the one before', async () => {
  const { server, oauth, data, secrets, signIns } = await set();
  await signInAs(server, oauth, secrets, 'ben');
  const path = join(data, 'accounts.secret');
  const [first, second] = [secrets.find('ada'), secrets.find('ben')];
  const [, sealed = ''] = /"ada",\s*"([^"]+)"/.exec(readFileSync(path, 'utf8')) ?? [];
  writeFileSync(path, readFileSync(path, 'utf8').replace(sealed, `${sealed.startsWith('A') ? 'B' : 'A'}${sealed.slice(1)}`));
  expect(() => secrets.find('ada')).toThrow('the sign-in of ada cannot be read. Give it again: ringneck account login ada');
  advance(80);
  server.fault = { status: 503, body: '' };
  await signIns.renewDue();
  server.fault = undefined;
  await signInAs(server, oauth, secrets, 'ada');
  secrets.putSignIn('ben', { ...secrets.findSignIn('ada')!, id: 'another of ben' });
  advance(LIFE_S);
  expect(await server.findPerson(await signIns.current(secrets.find('ben')!))).toBe('ada-1');
  expect([secrets.find('ada') === first, secrets.find('ben') === second]).toEqual([false, false]);
});

test('twenty times in a row a token is renewed, each by the pair before', async () => {
  const { server, secrets, signIns } = await set();
  const seen = new Set<string>();
  for (let times = 0; times < 20; times++) {
    advance(75);
    await signIns.renewDue();
    const token = secrets.find('ada')!;
    expect(await server.findPerson(token)).toBe('ada-1');
    signIns.accepted(token);
    seen.add(token);
  }
  expect(seen.size).toBe(20);
  expect(server.asked.length).toBe(21);
});

test.each([
  ['removed', (secrets: Secrets) => secrets.remove('ada'), undefined],
  ['given a token alone', (secrets: Secrets) => secrets.put('ada', 'a token alone'), 'a token alone'],
])('an account that is %s while its renewal begins stays so', async (_, change, left) => {
  const { server, oauth, restart } = await set();
  let open = () => {};
  const opened = new Promise<void>(resolve => {
    open = resolve;
  });
  const { secrets, signIns } = restart({ openOAuth: () => opened.then(() => oauth) });
  advance(80);
  const renewing = signIns.renewDue();
  await new Promise(setImmediate);
  change(secrets);
  open();
  await renewing;
  expect(secrets.find('ada')).toBe(left);
  expect(server.asked).toEqual(['authorization_code']);
});

test('a clock that was ahead at a failure, and is put right, holds up no renewal', async () => {
  const { server, secrets, signIns } = await set();
  const year = 365 * 86_400;
  server.fault = { status: 503, body: '' };
  vi.setSystemTime(START + 2 * year * 1000);
  await signIns.renewDue();
  vi.setSystemTime(START + (LIFE_S + 1) * 1000);
  server.fault = undefined;
  advance(10);
  expect(await server.findPerson(await signIns.current(secrets.find('ada')!))).toBe('ada-1');
});

test('a clock that jumps has nothing read with tokens of which nobody has said whose they are', async () => {
  const askWhose = async () => {
    throw new Error('answered 500');
  };
  const { secrets, signIns } = await set({ askWhose });
  advance(75);
  await signIns.renewDue();
  const token = secrets.find('ada')!;
  const year = 365 * 86_400_000;
  for (const at of [Date.now() + year, Date.now() - year]) {
    vi.setSystemTime(at);
    await expect(signIns.current(token)).rejects.toThrow('does not say whose the renewed token is');
  }
});

test('another token address gets nothing of a sign-in, and one of an earlier version is bound when it is renewed', async () => {
  const { server, secrets, signIns, restart } = await set();
  expect(secrets.findSignIn('ada')?.tokenUrl).toBeUndefined();
  advance(80);
  await signIns.renewDue();
  expect(secrets.findSignIn('ada')?.tokenUrl).toBe(server.settings.tokenUrl);
  const refresh = vi.fn();
  const strange = { tokenUrl: 'https://other.example/oauth/token', refresh };
  const { signIns: theirs } = restart({ openOAuth: async () => strange });
  advance(LIFE_S);
  await expect(theirs.current(secrets.find('ada')!)).resolves.toBe(secrets.find('ada'));
  const { secrets: found, signIns: asking } = restart({ openOAuth: async () => strange });
  await expect(asking.current(found.find('ada')!)).rejects.toMatchObject({
    kind: 'client',
    message: `the tokens of ada are of ${server.settings.tokenUrl}, and RINGNECK_TOKEN_URL is https://other.example/oauth/token now: set it back, or ringneck account login ada`,
  });
  expect(refresh).not.toHaveBeenCalled();
});

test('a token that was renewed within a minute is not renewed for a 401, however often it has worked', async () => {
  const { server, secrets, signIns } = await set();
  expect(await signIns.renewRefused(secrets.find('ada')!)).toBe(true);
  const renewed = secrets.find('ada')!;
  signIns.accepted(renewed);
  expect(await signIns.renewRefused(renewed)).toBe(false);
  // A probe was refused too.
  expect(await signIns.renewRefused(renewed, true)).toBe(true);
  advance(60);
  expect(await signIns.renewRefused(secrets.find('ada')!)).toBe(true);
  expect(server.asked).toHaveLength(4);
});

test('what a renewal says of scopes takes nothing away, and words that are none of ours say nothing of a sign-in', async () => {
  const { server, secrets, signIns } = await set();
  server.fault = { status: 200, body: '{"access_token":"a","token_type":"bearer","expires_in":120,"scope":"extapi:daily"}' };
  advance(80);
  await signIns.renewDue();
  expect(secrets.findSignIn('ada')).toMatchObject({ accessToken: 'a', scopes: SCOPES });
  const answer = { accessToken: 'a', refreshToken: 'r', expiresIn: 120, scopes: ['extapi:daily'] };
  expect(beginSignIn('x', answer, SCOPES, START)).toMatchObject({ scopes: SCOPES, areScopesTold: false });
  expect(beginSignIn('x', { ...answer, scopes: ['daily'] }, SCOPES, START)).not.toHaveProperty('areScopesTold');
  expect(beginSignIn('x', { ...answer, scopes: ['daily', '=evil()', 'email'] }, SCOPES, START).scopes).toEqual(['daily', 'email']);
});

test.each([
  [0.001, 1_000],
  [1, 1_000],
  [3, 3_000],
])(
  'a life of %d seconds ends after %d ms: one of a moment is renewed once a second, and none is used when it has ended',
  (expiresIn, ms) => {
    const answer = { accessToken: 'a', refreshToken: 'r', expiresIn, scopes: SCOPES };
    expect(beginSignIn('x', answer, SCOPES, START).expiresAt).toBe(START + ms);
  },
);

class Killed extends Error {}

/** Where a process may end while it renews: by its name, what is done until there. */
const steps = {
  'before it is tried whether the disk takes something': { put: 0 },
  'before the service is asked': { put: 1 },
  'after the service has given the next pair, before its answer is here': { refresh: 'answer lost' },
  'after the answer is here, before it is on the disk': { refresh: 'answer here' },
  'after it is on the disk, before it is used': { put: 2 },
  'after it is used, before that is noted': { used: true },
  'after that is noted': { used: true, noted: true },
} as const;

/** Between the service's giving a pair and our disk nobody has it: a service that takes the one before no more leaves no way. */
const CANNOT_BE_MENDED = [
  'after the service has given the next pair, before its answer is here',
  'after the answer is here, before it is on the disk',
];

test('killed at any step of a renewal an account is lost at the one that cannot be mended alone', async () => {
  const lost: string[] = [];
  for (const [step, until] of Object.entries<{ put?: number; refresh?: string; used?: boolean; noted?: boolean }>(steps)) {
    const { server, oauth, restart } = await set();
    advance(80);
    const killed = restart({
      openOAuth: async () => ({
        tokenUrl: server.settings.tokenUrl,
        refresh: async token => {
          const answer = await oauth.refresh(token);
          if (until.refresh) throw new Killed();
          return answer;
        },
      }),
    });
    let puts = 0;
    const put = killed.secrets.putSignIn.bind(killed.secrets);
    vi.spyOn(killed.secrets, 'putSignIn').mockImplementation((name, signIn) => {
      if (until.put === 0) throw new Killed();
      put(name, signIn);
      if (++puts === until.put) throw new Killed();
    });
    await killed.signIns.renewDue();
    if (until.used) await server.findPerson(killed.secrets.find('ada')!);
    if (until.noted) killed.signIns.accepted(killed.secrets.find('ada')!);

    const next = restart();
    advance(LIFE_S);
    const token = await next.signIns.current(next.secrets.find('ada')!);
    if ((await server.findPerson(token)) !== 'ada-1') lost.push(step);
  }
  expect(lost).toEqual(CANNOT_BE_MENDED);
});

test('where the service knows the newest pair no more, as after a backup of its own, the refresh token before is tried', async () => {
  const { server, secrets, signIns } = await set();
  const before = secrets.findSignIn('ada')!;
  secrets.putSignIn('ada', { ...before, refreshToken: 'forgotten', previous: before.refreshToken });
  advance(LIFE_S);
  expect(await server.findPerson(await signIns.current(before.accessToken))).toBe('ada-1');
});

test('what is renewed while somebody signs in anew is not kept, and is given to be taken back until that is written', async () => {
  const { server, oauth, secrets, restart } = await set();
  const before = secrets.find('ada')!;
  const given: SignIn[] = [];
  const { signIns, secrets: theirs } = restart({
    openOAuth: async () => ({
      tokenUrl: server.settings.tokenUrl,
      refresh: async token => {
        const answer = await oauth.refresh(token);
        theirs.put('ada', 'a token alone');
        return answer;
      },
    }),
    takeBack: async (_, signIn) => {
      given.push(signIn);
      if (given.length === 1) throw new Error('no space left on device');
    },
  });
  theirs.find('ada');
  advance(80);
  await signIns.renewDue();
  expect(theirs.find('ada')).toBe('a token alone');
  expect(theirs.isSame('ada', before)).toBe(false);
  await signIns.renewDue();
  await signIns.renewDue();
  expect(given.map(({ id, previous }) => [id, previous])).toEqual([
    ['sign-in of ada', expect.any(String)],
    ['sign-in of ada', expect.any(String)],
  ]);
  expect(await server.findPerson(given[1]?.accessToken ?? '')).toBe('ada-1');
  expect(server.asked).toEqual(['authorization_code', 'refresh_token']);
});
