import { expect, test } from 'vitest';
import { parseBaseUrl } from '../../src/client/base-url.ts';
import { explainUnreachable } from '../../src/client/transport.ts';
import { errorOf, RANGE, readAll, readiness, set } from './setting.ts';

test.each([
  [
    'https://api.example.com',
    'ENOTFOUND',
    'nobody knows the name api.example.com (ENOTFOUND): is RINGNECK_SERVICE_URL spelt right, and does DNS work?',
  ],
  [
    'https://api.example.com',
    'EAI_AGAIN',
    'nobody knows the name api.example.com (EAI_AGAIN): is RINGNECK_SERVICE_URL spelt right, and does DNS work?',
  ],
  [
    'http://127.0.0.1:4000',
    'ECONNREFUSED',
    'nobody listens at http://127.0.0.1:4000 (ECONNREFUSED): is it running, and is the port of RINGNECK_SERVICE_URL right?',
  ],
  ...[
    'SELF_SIGNED_CERT_IN_CHAIN',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  ].map(code => [
    'https://api.example.com',
    code,
    `nobody here trusts the certificate of https://api.example.com (${code}): name the file of its authority in NODE_EXTRA_CA_CERTS`,
  ]),
  [
    'https://api.example.com',
    'CERT_HAS_EXPIRED',
    'the certificate of https://api.example.com is not valid today (CERT_HAS_EXPIRED): renew it there, or set the clock of this machine',
  ],
  [
    'https://api.example.com',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'the certificate at https://api.example.com is that of another name (ERR_TLS_CERT_ALTNAME_INVALID): is RINGNECK_SERVICE_URL right?',
  ],
  [
    'https://api.example.com',
    'ERR_SSL_WRONG_VERSION_NUMBER',
    'https://api.example.com does not speak TLS (ERR_SSL_WRONG_VERSION_NUMBER): is http:// meant in RINGNECK_SERVICE_URL?',
  ],
  [
    'http://api.example.com',
    'redirect to https://www.example.com',
    'http://api.example.com does not answer plain HTTP (redirect to https://www.example.com): is https:// meant in RINGNECK_SERVICE_URL?',
  ],
  ...['redirect', 'redirect to http://www.example.com:8080'].map(code => [
    'http://api.example.com',
    code,
    `http://api.example.com sends elsewhere (${code}): set RINGNECK_SERVICE_URL to the final address`,
  ]),
  [
    'https://api.example.com',
    'redirect',
    'https://api.example.com sends elsewhere (redirect): set RINGNECK_SERVICE_URL to the final address',
  ],
  [
    'https://api.example.com',
    'UND_ERR_CONNECT_TIMEOUT',
    'https://api.example.com gives no answer (UND_ERR_CONNECT_TIMEOUT): is RINGNECK_SERVICE_URL right, does a firewall or proxy stand between?',
  ],
])('%s, %s', (url, code, sentence) => {
  expect(explainUnreachable(parseBaseUrl(url!), code!)).toBe(sentence);
});

test('a name that nobody knows is told as that, and any answer of somebody ends the silence', async () => {
  const unknown = await set({}, { baseUrl: 'http://ringneck.invalid', retries: 0 });
  expect(unknown.client.findSilence()).toBeUndefined();
  await errorOf(readAll(unknown.client.documents(readiness, RANGE)));
  expect(unknown.client.findSilence()?.why).toContain('nobody knows the name ringneck.invalid');
  const { service, client } = await set({ [`/v2/usercollection/${readiness.path}`]: { fault: 'reset' } }, { retries: 0 });
  await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(client.findSilence()).toBeDefined();
  service.on(`/v2/usercollection/${readiness.path}`, { status: 500 });
  await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(client.findSilence()).toBeUndefined();
});

test.each([
  ['https://you:secret@www.example.com/login?user=ada', 'does not answer plain HTTP (redirect to https://www.example.com): is https'],
  ['http://www.example.com:8080/login?user=ada', 'sends elsewhere (redirect to http://www.example.com:8080): set'],
  ['/login?user=ada', 'sends elsewhere (redirect): set'],
  ['mailto:ada@example.com', 'sends elsewhere (redirect): set'],
  [undefined, 'sends elsewhere (redirect): set'],
])('of a redirect to %s the origin is told, and nothing else', async (location, told) => {
  const headers: Record<string, string> = location === undefined ? {} : { location };
  const { client } = await set({ [`/v2/usercollection/${readiness.path}`]: { status: 302, headers } }, { retries: 0 });
  await errorOf(readAll(client.documents(readiness, RANGE)));
  expect(client.findSilence()?.why).toContain(told);
  expect(client.findSilence()?.why).not.toMatch(/ada|secret|login/);
});
