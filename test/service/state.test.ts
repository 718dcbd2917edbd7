import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { RingneckError, TryLaterError, UsageError } from '../../src/base/errors.ts';
import { findServiceOptions, openServiceState, type ServiceState, type ServiceStateOptions } from '../../src/service/state.ts';

const people = [
  { name: 'ada', userId: 'user-of-ada' },
  { name: 'ben', userId: 'user-of-ben' },
];
const options: ServiceStateOptions = { people, seed: 7, from: '2025-01-01', to: '2025-12-31' };

function makeFolder(): string {
  const folder = join(mkdtempSync(join(tmpdir(), 'state-')), 'data', 'service');
  onTestFinished(() => rmSync(join(folder, '..', '..'), { recursive: true }));
  return folder;
}

/** Opens, looks and closes. */
function visit<T>(folder: string, look: (state: ServiceState) => T, changed: Partial<ServiceStateOptions> = {}): T {
  const state = openServiceState(folder, { ...options, ...changed });
  try {
    return look(state);
  } finally {
    state.close();
  }
}

const tokensOf = (state: ServiceState) => state.people.map(person => person.token);

test('the first start makes a token for everybody, later ones tell them no more and still know them', () => {
  const folder = makeFolder();
  const first = visit(folder, state => state.people);
  expect(first).toEqual([
    { name: 'ada', user_id: 'user-of-ada', token: expect.stringMatching(/^rn_[\w-]{43}$/) },
    { name: 'ben', user_id: 'user-of-ben', token: expect.stringMatching(/^rn_[\w-]{43}$/) },
  ]);
  visit(folder, state => {
    expect(tokensOf(state)).toEqual([null, null]);
    expect(state.authenticate(first[1]!.token!)).toEqual({ userId: 'user-of-ben', state: 'active' });
    expect(state.authenticate('rn_unknown')).toBeUndefined();
  });
});

test('tokens are stored hashed, in files of their owner', () => {
  const folder = makeFolder();
  const [token] = visit(folder, tokensOf);
  const path = join(folder, 'state.json');
  expect(readFileSync(path, 'utf8')).not.toContain(token!.slice(3));
  expect([statSync(path).mode & 0o777, statSync(folder).mode & 0o777]).toEqual([0o600, 0o700]);
  expect(readdirSync(folder).sort()).toEqual(['lock.1', 'state.json']);
});

test('new tokens replace the old ones, which are revoked', () => {
  const folder = makeFolder();
  const [old] = visit(folder, tokensOf);
  const [fresh] = visit(folder, tokensOf, { newTokens: true });
  visit(folder, state => {
    expect(state.authenticate(old!)).toEqual({ userId: 'user-of-ada', state: 'revoked' });
    expect(state.authenticate(fresh!)).toEqual({ userId: 'user-of-ada', state: 'active' });
  });
});

test('the state of somebody’s token can be set and is kept; a revoked one stays revoked', () => {
  const folder = makeFolder();
  const [ada, ben] = visit(folder, tokensOf);
  visit(folder, state => {
    expect(state.setTokenState('user-of-ada', 'lapsed')).toEqual({ before: 'active', after: 'lapsed' });
    expect(state.setTokenState('user-of-ben', 'revoked')).toEqual({ before: 'active', after: 'revoked' });
    expect(state.authenticate(ada!)?.state).toBe('lapsed');
  });
  visit(folder, state => {
    expect(state.setTokenState('user-of-ada', 'active')).toEqual({ before: 'lapsed', after: 'active' });
    expect(state.setTokenState('user-of-ben', 'active')).toEqual({ before: 'revoked', after: 'revoked' });
    expect([state.authenticate(ada!)?.state, state.authenticate(ben!)?.state]).toEqual(['active', 'revoked']);
  });
});

test('the key of next_token and the edits are kept', () => {
  const folder = makeFolder();
  const key = visit(folder, state => {
    expect(state.edits).toEqual([]);
    state.addEdit({ person: 0, resource: 'sleep', day: '2025-03-01' });
    state.addEdit({ person: 1, day: '2025-03-02' });
    return state.tokenKey;
  });
  visit(folder, state => {
    expect(state.edits).toEqual([
      { person: 0, resource: 'sleep', day: '2025-03-01' },
      { person: 1, day: '2025-03-02' },
    ]);
    expect(state.tokenKey).toEqual(key);
    expect(key).toHaveLength(32);
  });
});

test.each([
  ['people', { people: people.slice(1) }, '--people is 1', 'made with 2'],
  ['seed', { seed: 8 }, '--seed is 8', 'made with 7'],
  ['from', { from: '2024-01-01' }, '--from is 2024-01-01', 'made with 2025-01-01'],
])(
  'other %s than the stored ones are wrong usage that names both values and the way to another folder',
  (_name, changed, asked, stored) => {
    const folder = makeFolder();
    visit(folder, tokensOf);
    const open = () => visit(folder, tokensOf, changed);
    expect(open).toThrow(UsageError);
    expect(open).toThrow(asked);
    expect(open).toThrow(stored);
    expect(open).toThrow(/; use that value, or another folder: RINGNECK_DATA=\.\/data-2 ringneck service …$/);
    expect(visit(folder, tokensOf)).toEqual([null, null]);
  },
);

test('another last day is taken, and remembered', () => {
  const folder = makeFolder();
  visit(folder, tokensOf);
  expect(visit(folder, tokensOf, { to: '2026-01-31' })).toEqual([null, null]);
  expect(findServiceOptions(folder)).toEqual({ people: 2, seed: 7, from: '2025-01-01', to: '2026-01-31' });
});

test('a folder in use is refused with the holder’s PID', () => {
  const folder = makeFolder();
  visit(folder, () => {
    expect(() => openServiceState(folder, options)).toThrow(TryLaterError);
    expect(() => openServiceState(folder, options)).toThrow(String(process.pid));
  });
  visit(folder, tokensOf);
});

test('a state file that cannot be read is named, not replaced', () => {
  const folder = makeFolder();
  visit(folder, tokensOf);
  for (const text of ['{', '{"format":2}']) {
    writeFileSync(join(folder, 'state.json'), text);
    expect(() => visit(folder, tokensOf)).toThrow(RingneckError);
    expect(() => visit(folder, tokensOf)).toThrow('state.json');
    expect(readFileSync(join(folder, 'state.json'), 'utf8')).toBe(text);
  }
});
