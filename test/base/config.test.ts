import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readSettings, settingsTable } from '../../src/base/config.ts';
import { UsageError } from '../../src/base/errors.ts';

const refusal = (env: NodeJS.ProcessEnv): string => {
  try {
    readSettings(env);
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    return (error as Error).message;
  }
  throw new Error('it was not refused');
};

test('an empty environment gives the defaults', () => {
  expect(readSettings({ RINGNECK_TIME_ZONE: 'Asia/Kathmandu' })).toEqual({
    consoleHost: '127.0.0.1',
    consolePort: 8088,
    data: resolve('data'),
    enrolment: null,
    queuePrefix: 'ringneck',
    host: '127.0.0.1',
    port: 8080,
    lakeRegion: 'us-east-1',
    logLevel: 'info',
    nightly: '30 3 * * *',
    nightlyDays: 14,
    timeZone: 'Asia/Kathmandu',
    sweepHours: 6,
    sweepDays: 3,
    heartRateMinutes: 15,
    settledDays: 14,
    historyDays: 30,
    requestsPerToken: 8,
    heartRatePath: 'auto',
    signatureWindow: 300,
    redirectUrl: 'http://127.0.0.1:8976/callback',
    scopes: ['personal', 'daily', 'heartrate', 'workout', 'tag', 'session', 'spo2Daily'],
    headerPrefix: 'x-service-',
    snapshot: resolve('data', 'snapshot.duckdb'),
    snapshotMode: 0o600,
    webhooks: null,
    signIn: null,
    namesData: false,
    unknown: [],
    readable: [],
  });
});

test('the system’s time zone is the default', () => {
  expect(readSettings({}).timeZone).toBe(Intl.DateTimeFormat().resolvedOptions().timeZone);
});

test('an empty variable is not set', () => {
  const settings = readSettings({ RINGNECK_PORT: '', RINGNECK_SERVICE_URL: '', RINGNECK_SNAPSHOT: '', RINGNECK_SECRET_KEY: '' });
  expect(settings.port).toBe(8080);
  expect(settings.serviceUrl).toBeUndefined();
  expect(settings.secretKey).toBeUndefined();
  expect(settings.snapshot).toBe(resolve('data', 'snapshot.duckdb'));
});

test('values are read into what they mean', () => {
  const settings = readSettings({
    RINGNECK_SERVICE_URL: 'http://127.0.0.1:4000/base/',
    RINGNECK_DATA: '/var/lib/ringneck/',
    RINGNECK_QUEUE_URL: 'redis://user:word@queue:6379/2',
    RINGNECK_SNAPSHOT_MODE: '0640',
    RINGNECK_PORT: '0',
    RINGNECK_HEART_RATE_PATH: '/v2/sandbox/usercollection/heartrate',
    RINGNECK_SECRET_KEY: 'sixteen letters!',
  });
  expect(settings).toMatchObject({
    serviceUrl: 'http://127.0.0.1:4000/base',
    data: '/var/lib/ringneck',
    snapshot: '/var/lib/ringneck/snapshot.duckdb',
    queueUrl: 'redis://user:word@queue:6379/2',
    snapshotMode: 0o640,
    port: 0,
    heartRatePath: '/v2/sandbox/usercollection/heartrate',
    secretKey: 'sixteen letters!',
  });
});

test('all wrong ones are named at once, with value and what is expected', () => {
  expect(refusal({ RINGNECK_PORT: '80a', RINGNECK_TIME_ZONE: 'Europe/Zürich', RINGNECK_LOG_LEVEL: 'loud' })).toBe(
    'Wrong settings. RINGNECK_PORT is "80a": expected a whole number from 0 to 65535; ' +
      'RINGNECK_LOG_LEVEL is "loud": expected one of fatal, error, warn, info, debug, trace, silent; ' +
      'RINGNECK_TIME_ZONE is "Europe/Zürich": expected an IANA time zone, as Europe/Zurich.',
  );
});

test('the secret key is never shown, nor a password in an address', () => {
  expect(refusal({ RINGNECK_SECRET_KEY: ' '.repeat(20) })).toBe(refusal({ RINGNECK_SECRET_KEY: 'too-short' }));
  expect(refusal({ RINGNECK_SECRET_KEY: 'too-short' })).toBe('Wrong setting. RINGNECK_SECRET_KEY: expected at least 16 characters.');
  expect(refusal({ RINGNECK_METRICS_TOKEN: 'too-short' })).toBe(
    'Wrong setting. RINGNECK_METRICS_TOKEN: expected 16 to 512 characters of printable ASCII without blanks.',
  );
  expect(refusal({ RINGNECK_QUEUE_URL: 'http://user:pa@ss?word@queue:6379/?password=word' })).toBe(
    'Wrong setting. RINGNECK_QUEUE_URL is "http://***@queue:6379/?***": expected a redis:// or rediss:// address.',
  );
  for (const words of ['password=hidden host=h', "host=h PASSWORD = 'so hidden' user=u", "sslpassword='it\\'s hidden"]) {
    expect(refusal({ RINGNECK_WAREHOUSE: `ducklake:postgres:dbname=ring ${words}` })).not.toContain('hidden');
  }
  for (const address of [
    'redis:/u:hidden@queue',
    'u:hidden@queue',
    ':hidden@queue',
    'hidden@queue',
    'redis:hidden@queue',
    'http://h?token=hidden',
    'redis://u:hidden\n@q z',
  ]) {
    expect(refusal({ RINGNECK_SERVICE_URL: address })).not.toContain('hidden');
  }
});

test('a command with an unclosed quote is refused without being shown: its words may hold a secret', () => {
  expect(refusal({ RINGNECK_ON_FAILURE: 'curl -d "key=hidden' })).toBe(
    'Wrong setting. RINGNECK_ON_FAILURE: expected a command, its quotes closed.',
  );
});

test.each([
  ['RINGNECK_SERVICE_URL', ['api.example.com', 'ftp://example.com', 'https://u:p@example.com', 'https://example.com/?a=b', 'http://']],
  ['RINGNECK_DATA', ['~/ringneck']],
  ['RINGNECK_QUEUE_URL', ['redis:', 'localhost:6379', 'redis://']],
  ['RINGNECK_QUEUE_PREFIX', ['a:b', 'a b', 'x'.repeat(65)]],
  ['RINGNECK_HOST', ['a b', 'http://x']],
  ['RINGNECK_PORT', ['65536', '-1', '8080.5', ' 80', '1e3']],
  ['RINGNECK_NIGHTLY', ['3', 'nightly', '61 3 * * *', '0 0 30 2 *', '1 2 3 4 5 6 7']],
  ['RINGNECK_NIGHTLY_DAYS', ['0', '14d']],
  ['RINGNECK_TIME_ZONE', ['Nowhere', 'Europe']],
  ['RINGNECK_SETTLED_DAYS', ['-1', 'never']],
  ['RINGNECK_REQUESTS_PER_TOKEN', ['0', '65']],
  ['RINGNECK_HEART_RATE_PATH', ['heartrate', '/a b', '/a?b', 'https://x/y']],
  ['RINGNECK_SNAPSHOT', ['~/x.duckdb']],
  ['RINGNECK_SNAPSHOT_MODE', ['600 ', '0888', '0440', '6', 'rw-------']],
])('%s refuses what it cannot be', (name, values) => {
  for (const value of values) expect(refusal({ [name]: value }), value).toContain(`${name} is ${JSON.stringify(value).slice(0, 4)}`);
});

test('the cron pattern may have seconds, names and aliases', () => {
  for (const pattern of ['0 30 3 * * *', '@daily', '0 4 * * mon-fri'])
    expect(readSettings({ RINGNECK_NIGHTLY: pattern }).nightly).toBe(pattern);
});

test('a variable that is no setting is named, with the nearest that is', () => {
  expect(
    readSettings({ RINGNECK_PROT: '1', RINGNECK_NIGHTLYDAYS: '2', RINGNECK_COLOUR: 'x', RINGNEC_PORT: '1', PATH: '' }).unknown,
  ).toEqual([
    'RINGNECK_COLOUR is not a setting.',
    'RINGNECK_NIGHTLYDAYS is not a setting: did you mean RINGNECK_NIGHTLY_DAYS?',
    'RINGNECK_PROT is not a setting: did you mean RINGNECK_PORT?',
  ]);
});

test('the table has a row for each setting, the same on every machine', () => {
  const rows = settingsTable().split('\n');
  expect(rows.slice(0, 6)).toEqual([
    '| name | default | meaning |',
    '|---|---|---|',
    '| RINGNECK_SERVICE_URL | – | base address of the service |',
    '| RINGNECK_ALLOW_HTTP | – | `1`: RINGNECK_SERVICE_URL may be `http:` on another host, although tokens then travel unencrypted |',
    '| RINGNECK_PERSONAL_INFO | – | `1`: all of personal_info is kept (age, sex, height, weight, e-mail address), read with the recent days; without it only its identifier is asked for |',
    '| RINGNECK_DATA | `./data` | data folder: warehouse, snapshot, secret key, inbox, queue, state of `ringneck service` |',
  ]);
  expect(rows).toHaveLength(52);
  expect(rows.find(row => row.includes('RINGNECK_TIME_ZONE'))).toBe(
    '| RINGNECK_TIME_ZONE | the system’s | time zone of the cron pattern |',
  );
});

const webhooks = {
  RINGNECK_CALLBACK_URL: 'https://ringneck.example/webhook',
  RINGNECK_CLIENT_ID: 'client-1',
  RINGNECK_CLIENT_SECRET: 'secret-new',
  RINGNECK_VERIFICATION_TOKEN: 'known-to-us',
};

test('webhooks are four settings together, and the secret before beside the new one while it is being replaced', () => {
  expect(readSettings(webhooks).webhooks).toEqual({
    callbackUrl: 'https://ringneck.example/webhook',
    clientId: 'client-1',
    clientSecret: 'secret-new',
    secrets: ['secret-new'],
    verificationToken: 'known-to-us',
  });
  expect(readSettings({ ...webhooks, RINGNECK_CLIENT_SECRET_OLD: 'secret-old' }).webhooks?.secrets).toEqual(['secret-new', 'secret-old']);
});

test('who asks for no webhooks reads some of the four as none', () => {
  const { RINGNECK_CLIENT_ID, RINGNECK_CLIENT_SECRET } = webhooks;
  const two = { RINGNECK_CLIENT_ID, RINGNECK_CLIENT_SECRET };
  const three = { ...two, RINGNECK_VERIFICATION_TOKEN: 'known-to-us' };
  expect(refusal(three)).toContain('RINGNECK_CALLBACK_URL: not set');
  expect(readSettings(three, { follows: false })).toMatchObject({ clientId: 'client-1', clientSecret: 'secret-new', webhooks: null });
  expect(() => readSettings({ ...two, RINGNECK_CALLBACK_URL: 'nonsense' }, { follows: false })).toThrow(
    'RINGNECK_CALLBACK_URL is "nonsense"',
  );
});

test('some of the four and not all are refused, and no secret is shown', () => {
  const { RINGNECK_VERIFICATION_TOKEN: _, ...three } = webhooks;
  expect(refusal(three)).toBe(
    'Wrong setting. RINGNECK_VERIFICATION_TOKEN: not set, but RINGNECK_CALLBACK_URL, RINGNECK_CLIENT_ID, RINGNECK_CLIENT_SECRET are; webhooks need all four.',
  );
  expect(refusal({ ...webhooks, RINGNECK_CLIENT_SECRET: 'two words' })).not.toContain('two words');
  expect(refusal({ ...webhooks, RINGNECK_CALLBACK_URL: 'https://u:p@ringneck.example/webhook' })).toContain(
    'RINGNECK_CALLBACK_URL is "https://***@ringneck.example/webhook": expected an http:// or https:// address without user or fragment',
  );
});

test('the client alone is for sign-in, and both halves of it belong together', () => {
  const { RINGNECK_CLIENT_ID, RINGNECK_CLIENT_SECRET } = webhooks;
  const client = { RINGNECK_CLIENT_ID, RINGNECK_CLIENT_SECRET };
  expect(readSettings(client)).toMatchObject({ webhooks: null, signIn: null });
  expect(readSettings({ ...client, RINGNECK_SERVICE_URL: 'https://api.example.com/base' })).toMatchObject({
    webhooks: null,
    signIn: {
      authorizeUrl: 'https://api.example.com/base/oauth/authorize',
      tokenUrl: 'https://api.example.com/base/oauth/token',
      redirectUrl: 'http://127.0.0.1:8976/callback',
      scopes: ['personal', 'daily', 'heartrate', 'workout', 'tag', 'session', 'spo2Daily'],
      clientId: 'client-1',
      clientSecret: 'secret-new',
    },
  });
  expect(refusal({ RINGNECK_CLIENT_ID })).toBe(
    'Wrong setting. RINGNECK_CALLBACK_URL, RINGNECK_CLIENT_SECRET, RINGNECK_VERIFICATION_TOKEN: not set, but RINGNECK_CLIENT_ID is; ' +
      'sign-in needs both halves of the client, and webhooks need all four.',
  );
});

test('the addresses and scopes of sign-in are what is given, and no way on which others read along', () => {
  expect(
    readSettings({
      ...webhooks,
      RINGNECK_SERVICE_URL: 'https://api.example.com',
      RINGNECK_AUTHORIZE_URL: 'https://www.example.com/oauth/authorize',
      RINGNECK_TOKEN_URL: 'https://api.example.com/token',
      RINGNECK_REDIRECT_URL: 'http://localhost:9000',
      RINGNECK_SCOPES: ' daily  spo2Daily daily ',
    }).signIn,
  ).toEqual({
    authorizeUrl: 'https://www.example.com/oauth/authorize',
    tokenUrl: 'https://api.example.com/token',
    redirectUrl: 'http://localhost:9000',
    scopes: ['daily', 'spo2Daily'],
    clientId: 'client-1',
    clientSecret: 'secret-new',
  });
  expect(refusal({ RINGNECK_SCOPES: 'personal Email' })).toContain(
    'RINGNECK_SCOPES is "personal Email": expected words of printable ASCII separated by blanks, without `email`',
  );
  expect(refusal({ RINGNECK_REDIRECT_URL: 'http://ringneck.example/callback' })).toContain('expected an address without user');
  expect(refusal({ RINGNECK_TOKEN_URL: 'http://api.example.com/token' })).toContain('RINGNECK_TOKEN_URL is http: on another host');
});

test('a service on another host is asked by https:, unless RINGNECK_ALLOW_HTTP allows the other', () => {
  for (const address of [
    'https://api.example.com',
    'http://127.0.0.1:4000',
    'http://localhost',
    'http://a.localhost:1',
    'http://[::1]:4000',
  ])
    expect(readSettings({ RINGNECK_SERVICE_URL: address }).serviceUrl).toBe(address);
  for (const address of [
    'http://api.example.com',
    'http://10.0.0.1',
    'http://127.0.0.1.example.com',
    'http://localhost.example.com',
    'http://0.0.0.0',
  ]) {
    expect(refusal({ RINGNECK_SERVICE_URL: address })).toBe(
      'Wrong setting. RINGNECK_SERVICE_URL is http: on another host, where everybody on the way can read the tokens: ' +
        'give its https: address, or set RINGNECK_ALLOW_HTTP=1.',
    );
    expect(readSettings({ RINGNECK_SERVICE_URL: address, RINGNECK_ALLOW_HTTP: '1' }).serviceUrl).toBe(address);
  }
});

test('every secret may come from a file, without its line break', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'ringneck-test-')), 'secret');
  onTestFinished(() => rmSync(dirname(file), { recursive: true }));
  writeFileSync(file, 'redis://:a-password-of-the-queue@queue:6379\n');
  const given = {
    RINGNECK_CALLBACK_URL: 'https://ringneck.example/webhook',
    RINGNECK_CLIENT_ID: 'c',
    RINGNECK_SECRET_KEY_FILE: file,
    RINGNECK_CLIENT_SECRET_FILE: file,
    RINGNECK_CLIENT_SECRET_OLD_FILE: file,
    RINGNECK_VERIFICATION_TOKEN_FILE: file,
    RINGNECK_QUEUE_URL_FILE: file,
  };
  const value = 'redis://:a-password-of-the-queue@queue:6379';
  expect(readSettings(given)).toMatchObject({
    secretKey: value,
    queueUrl: value,
    unknown: [],
    webhooks: { secrets: [value, value], verificationToken: value },
  });
  writeFileSync(file, `${value}\r\n`);
  expect(readSettings(given).secretKey).toBe(value);
  expect(settingsTable()).toContain('it signs the events; or RINGNECK_CLIENT_SECRET_FILE: a file that holds it |');
});

test('a secret that is given twice, empty, wrong or unreadable is refused, without being shown', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ringneck-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'secret');
  expect(refusal({ RINGNECK_SECRET_KEY_FILE: file })).toBe(
    `Wrong setting. RINGNECK_SECRET_KEY_FILE cannot be read: ENOENT: no such file or directory, open '${file}'.`,
  );
  writeFileSync(file, '\n');
  expect(refusal({ RINGNECK_SECRET_KEY_FILE: file })).toBe(`Wrong setting. RINGNECK_SECRET_KEY_FILE: ${file} is empty.`);
  writeFileSync(file, 'hidden');
  expect(refusal({ RINGNECK_SECRET_KEY_FILE: file, RINGNECK_SECRET_KEY: 'hidden hidden hidden' })).toBe(
    'Wrong setting. RINGNECK_SECRET_KEY and RINGNECK_SECRET_KEY_FILE are both set: give one of them.',
  );
  expect(refusal({ RINGNECK_SECRET_KEY_FILE: file })).toBe(
    'Wrong setting. RINGNECK_SECRET_KEY, from RINGNECK_SECRET_KEY_FILE: expected at least 16 characters.',
  );
  expect(refusal({ RINGNECK_QUEUE_URL_FILE: file })).toBe(
    'Wrong setting. RINGNECK_QUEUE_URL, from RINGNECK_QUEUE_URL_FILE: expected a redis:// or rediss:// address.',
  );
});
