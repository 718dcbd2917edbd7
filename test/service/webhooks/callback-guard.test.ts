import { expect, onTestFinished, test } from 'vitest';
import { createCallCallback } from '../../../src/service/webhooks/call-callback.ts';
import {
  type CallbackGuard,
  CallbackRefused,
  createCallbackGuard,
  findAddressRange,
  holdsOnlyCarried,
  portOf,
} from '../../../src/service/webhooks/callback-guard.ts';
import { agree, startCallback } from './callback.ts';
import { loopback, openTestWebhooks } from './webhook-service.ts';

const event = { event_type: 'create', data_type: 'sleep', object_id: 'o', event_time: '2025-03-10T08:00:00Z', user_id: 'u' } as const;

/** What names mean to the service under test. */
const NAMES: Record<string, string[]> = {
  'public.example': ['93.184.216.34', '2606:2800:220:1:248:1893:25c8:1946'],
  'loopback.example': ['127.0.0.1'],
  'loopback6.example': ['::1'],
  'mixed.example': ['93.184.216.34', '127.0.0.1'],
  'mixed6.example': ['2606:2800:220:1:248:1893:25c8:1946', '::1'],
  'private.example': ['10.0.0.5'],
  'link.example': ['169.254.169.254'],
  'mapped.example': ['::ffff:127.0.0.1'],
  'nat64.example': ['64:ff9b::127.0.0.1'],
  'zone.example': ['fe80::1%lo'],
  'unique.example': ['fd00::1'],
  'unspecified.example': ['0.0.0.0'],
  'xn--bcher-kva.example': ['127.0.0.1'],
  'nothing.example': [],
  localhost: ['93.184.216.34'],
  'app.localhost': ['93.184.216.34'],
};

async function resolve(hostname: string): Promise<string[]> {
  const found = NAMES[hostname.replace(/\.$/, '')];
  if (!found) throw new Error(`getaddrinfo ENOTFOUND ${hostname}`);
  return found;
}

/** All that is asked of a callback before a connection to it is made. */
async function judge(guard: CallbackGuard, text: string): Promise<void> {
  const url = guard.parse(text);
  await guard.resolve(url.hostname, portOf(url));
}

/** Each is refused whatever listens there; PORT is the canary's. */
const REFUSED: Record<string, readonly string[]> = {
  'its host has an address that is not public': [
    // Loopback in every spelling that a URL parser takes for an address.
    'http://127.0.0.1:PORT/',
    'http://127.0.0.1./',
    'http://127.1:PORT/',
    'http://127.0.1:PORT/',
    'http://2130706433:PORT/',
    'http://0x7f000001:PORT/',
    'http://0x7f.0.0.1:PORT/',
    'http://0x7f.1:PORT/',
    'http://0177.0.0.1:PORT/',
    'http://0177.0.0.01:PORT/',
    'http://017700000001:PORT/',
    'http://0x7F.0x0.0x0.0x1:PORT/',
    'http://127.0.0.2:PORT/',
    'http://127.255.255.254:PORT/',
    'http://127%2e0%2e0%2e1:PORT/',
    'http://%31%32%37.0.0.1:PORT/',
    'http://１２７.０.０.１:PORT/',
    'http://127。0。0。1:PORT/',
    'http://①②⑦.0.0.1:PORT/',
    'http:\\\\127.0.0.1:PORT\\',
    'http:127.0.0.1:PORT/',
    'HTTP://127.0.0.1:PORT/',
    'https://127.0.0.1:PORT/',
    'http://127.0.0.1:PORT/?next=http://public.example/',
    // Addresses that mean "here", or nobody.
    'http://0.0.0.0:PORT/',
    'http://0:PORT/',
    'http://0.1.2.3:PORT/',
    'http://255.255.255.255:PORT/',
    // Private, shared, link-local, and where clouds keep their secrets.
    'http://10.0.0.1:PORT/',
    'http://10.255.255.255/',
    'http://172.16.0.1/',
    'http://172.31.255.255/',
    'http://192.168.0.1/',
    'http://192.168.1.1:8080/',
    'http://169.254.169.254/latest/meta-data/',
    'http://2852039166/latest/meta-data/',
    'http://0xa9fea9fe/',
    'http://0251.0376.0251.0376/',
    'http://169.254.170.2/v2/credentials',
    'http://100.64.0.1/',
    'http://100.100.100.200/latest/meta-data/',
    'http://192.0.0.192/opc/v1/instance/',
    // Reserved, for documentation, for measurements, for many.
    'http://192.0.2.1/',
    'http://198.18.0.1/',
    'http://198.19.255.255/',
    'http://198.51.100.7/',
    'http://203.0.113.9/',
    'http://192.88.99.1/',
    'http://224.0.0.1/',
    'http://239.255.255.250/',
    'http://240.0.0.1/',
    // IPv6: loopback, unspecified, link-local, unique local, site-local, for many, documentation, discard.
    'http://[::1]:PORT/',
    'http://[0:0:0:0:0:0:0:1]:PORT/',
    'http://[0000::0001]:PORT/',
    'http://[::]:PORT/',
    'http://[fe80::1]/',
    'http://[febf::1]/',
    'http://[fc00::1]/',
    'http://[fd00:ec2::254]/latest/meta-data/',
    'http://[fec0::1]/',
    'http://[ff02::1]/',
    'http://[2001:db8::1]/',
    'http://[3fff::1]/',
    'http://[100::1]/',
    'http://[5f00::1]/',
    'http://[2001:2::1]/',
    'http://[2001:20::1]/',
    // IPv4 inside of IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo (either end).
    'http://[::ffff:127.0.0.1]:PORT/',
    'http://[::ffff:7f00:1]:PORT/',
    'http://[0:0:0:0:0:ffff:7f00:1]:PORT/',
    'http://[::ffff:10.0.0.1]/',
    'http://[::ffff:169.254.169.254]/',
    'http://[::127.0.0.1]:PORT/',
    'http://[::7f00:1]:PORT/',
    'http://[::ffff:0:127.0.0.1]:PORT/',
    'http://[64:ff9b::127.0.0.1]:PORT/',
    'http://[64:ff9b::a9fe:a9fe]/',
    'http://[64:ff9b::10.0.0.1]/',
    'http://[64:ff9b:1::7f00:1]/',
    // What Azure answers to its machines alone.
    'http://168.63.129.16/metadata',
    'http://[::ffff:168.63.129.16]/',
    'http://[2002:a83f:8110::]/',
    // ISATAP, in any network (RFC 5214).
    'http://[2a00:1450:4001::5efe:127.0.0.1]/',
    'http://[2a00:1450:4001:0:0:5efe:a00:1]/',
    'http://[2a00:1450:4001:0:200:5efe:192.168.0.1]/',
    'http://[2a00:1450:4001:0:100:5efe:169.254.169.254]/',
    'http://[2a00:1450:4001:0:200:5efe:168.63.129.16]/',
    'http://[2002:7f00:1::]/',
    'http://[2002:a00:1::1]/',
    'http://[2002:c0a8:101::1]/',
    'http://[2001:0:7f00:1::f5ff:fffe]/',
    'http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/',
    // Names that lead there.
    'http://loopback.example:PORT/',
    'http://LOOPBACK.example:PORT/',
    'http://loopback.example.:PORT/',
    'http://loopback6.example:PORT/',
    'http://mixed.example:PORT/',
    'http://mixed6.example:PORT/',
    'http://private.example/',
    'http://link.example/',
    'http://mapped.example:PORT/',
    'http://nat64.example:PORT/',
    'http://zone.example/',
    'http://unique.example/',
    'http://unspecified.example:PORT/',
    'http://bücher.example:PORT/',
  ],
  'its host has no address that is public': [
    // Whatever a resolver says of these names.
    'http://localhost:PORT/',
    'http://LOCALHOST:PORT/',
    'http://localhost.:PORT/',
    'http://app.localhost:PORT/',
    'http://nothing.example/',
  ],
  'its host cannot be found': ['http://unknown.example/', 'https://localhost.localdomain/', 'http://127.0.0.1.nip.example/'],
  'only https: and http: are called': [
    'ftp://public.example/',
    'file:///etc/passwd',
    'gopher://127.0.0.1:6379/_FLUSHALL',
    'data:application/json,{}',
    'javascript:alert(1)',
    'ws://public.example/',
    'unix:/var/run/docker.sock',
  ],
  'it holds a user name or password': [
    'http://user@public.example/',
    'http://user:word@public.example/',
    'http://:word@public.example/',
    'http://public.example@127.0.0.1:PORT/',
    'http://public.example%40@127.0.0.1:PORT/',
  ],
  'it holds a fragment, which no request can carry': ['http://public.example/#part', 'http://127.0.0.1:PORT#@public.example/'],
  'it holds a blank or a control character': [
    'http://127.0.0.1:PORT/ HTTP/1.1',
    'http://127.0.0.1:PORT/\r\nX-Evil: 1',
    'ht\ntp://127.0.0.1:PORT/',
    ' http://127.0.0.1:PORT/',
    'http://public.example/\u0000',
  ],
  'it is not a URL; it looks like https://example.com/webhook': [
    '',
    'public.example',
    '//127.0.0.1:PORT/',
    'http://',
    'http://[::1/',
    'http://[::1%25lo]/',
    'http://127.0.0.1:99999/',
    'http://256.256.256.256/',
  ],
  'its port is 22; taken are 80, 443, 8080, 8443': [
    'http://public.example:22/',
    'http://93.184.216.34:22/',
    'https://[2606:2800:220:1::1]:22/',
  ],
  'it is longer than 2048 characters': [`http://public.example/${'x'.repeat(2048)}`],
};

const all = Object.values(REFUSED).flat();

test('the corpus holds at least 80 URLs, none twice', () => {
  expect(all.length).toBeGreaterThanOrEqual(80);
  expect(new Set(all).size).toBe(all.length);
});

test('every URL of the corpus is refused for its reason, at the verification and at a delivery, and nobody sees a connection', async () => {
  const canaries = [await startCallback(agree, '127.0.0.1'), await startCallback(agree, '::1')];
  const { verify, post } = openTestWebhooks({ allowedRanges: [], resolve });
  for (const { port } of canaries) {
    for (const [reason, urls] of Object.entries(REFUSED)) {
      for (const url of urls) {
        const callback_url = url.replace('PORT', String(port));
        const refusal = await verify(callback_url, 'token').catch((error: unknown) => error);
        expect([url, refusal instanceof CallbackRefused, (refusal as Error).message]).toEqual([url, true, reason]);
        const subscription = { callback_url, id: 's', client_id: 'c', state: 'active', since: '', expiration_time: '' } as const;
        const posted = await post({ ...subscription, event_type: 'create', data_type: 'sleep' }, event);
        expect([url, posted]).toEqual([url, { outcome: 'timeout', reason }]);
      }
    }
  }
  expect(canaries.map(canary => canary.connections())).toEqual([0, 0]);
});

test('the canary would have seen a connection: where loopback is allowed it does, at any port and by any spelling', async () => {
  const canary = await startCallback();
  const { verify } = openTestWebhooks({ allowedRanges: loopback, resolve });
  for (const host of ['127.0.0.1', '0x7f.1', '[::ffff:127.0.0.1]', 'loopback.example', 'localhost', 'app.localhost']) {
    await verify(`http://${host}:${canary.port}/`, 'token');
  }
  expect(canary.received).toHaveLength(6);
});

test.each([
  'https://public.example/hook',
  'http://public.example:8080/hook?key=1',
  'https://93.184.216.34:8443/',
  'http://[2606:2800:220:1:248:1893:25c8:1946]/',
  'http://[::ffff:93.184.216.34]/',
  'http://[64:ff9b::93.184.216.34]/',
  'http://[2002:5db8:d822::1]/',
])('%s is taken', async url => {
  await expect(judge(createCallbackGuard([], resolve), url)).resolves.toBeUndefined();
});

test('an allowed block opens that block and nothing beside it', async () => {
  const guard = createCallbackGuard([findAddressRange('10.1.0.0/16')!, findAddressRange('fd00::/8')!], resolve);
  await expect(judge(guard, 'http://10.1.2.3:3000/')).resolves.toBeUndefined();
  await expect(judge(guard, 'http://unique.example:3000/')).resolves.toBeUndefined();
  await expect(judge(guard, 'http://10.2.0.1/')).rejects.toThrow('not public');
  await expect(judge(guard, 'http://127.0.0.1/')).rejects.toThrow('not public');
  await expect(judge(guard, 'http://public.example:3000/')).rejects.toThrow('its port is 3000');
});

test.each(['127.0.0.1', '127.1/8', '10.0.0.0/33', 'fd00::/129', 'localhost/8', ''])('%j is no block of addresses', text => {
  expect(findAddressRange(text)).toBeUndefined();
});

test.each([
  ['::ffff:127.0.0.0/104', true],
  ['::ffff:0:0/96', true],
  ['64:ff9b::7f00:0/104', true],
  ['2002:7f00::/24', true],
  ['2001:0:7f00::/40', true],
  // Beside what carries IPv4 these hold addresses of their own.
  ['::/0', false],
  ['2000::/3', false],
  ['2001::/16', false],
  ['fd00::/8', false],
  ['127.0.0.0/8', false],
])('that all of %s is IPv4 inside of IPv6, and to allow it opens nothing, is %s', async (text, only) => {
  const range = findAddressRange(text)!;
  expect(holdsOnlyCarried(range)).toBe(only);
  const guard = createCallbackGuard([range], resolve);
  if (only) await expect(judge(guard, 'http://[::ffff:127.0.0.1]/')).rejects.toThrow('not public');
});

test('a name that comes to mean another address is judged anew at the next connection', async () => {
  const callback = await startCallback((response, request, received) => {
    response.setHeader('connection', 'close');
    agree(response, request, received);
  });
  const canary = await startCallback(agree, '127.0.0.2');
  let meaning = '127.0.0.1';
  const { verify, post } = openTestWebhooks({ allowedRanges: [findAddressRange('127.0.0.1/32')!], resolve: async () => [meaning] });
  const callback_url = `http://rebind.example:${callback.port}/hook`;
  await verify(callback_url, 'token');
  const subscription = { callback_url, id: 's', client_id: 'c', state: 'active', since: '', expiration_time: '' } as const;
  const deliver = () => post({ ...subscription, event_type: 'create', data_type: 'sleep' }, event);
  expect(await deliver()).toEqual({ outcome: 'delivered', reason: 'answered 200' });
  meaning = '127.0.0.2';
  expect(await deliver()).toEqual({ outcome: 'timeout', reason: 'its host has an address that is not public' });
  await expect(verify(callback_url.replace(String(callback.port), String(canary.port)), 'token')).rejects.toThrow('not public');
  expect([callback.connections(), canary.connections()]).toEqual([2, 0]);
});

test('the connection goes to the address that was judged, by whatever name', async () => {
  const callback = await startCallback();
  let asked = 0;
  const guard = createCallbackGuard(loopback, async () => {
    asked += 1;
    return ['127.0.0.1'];
  });
  const call = createCallCallback(guard);
  onTestFinished(() => call.close());
  const url = guard.parse(`http://no-such-name.invalid:${callback.port}/hook`);
  expect(await call({ method: 'GET', url, headers: {}, maxBytes: 100 })).toMatchObject({ status: 200 });
  expect([asked, callback.received[0]!.headers.host]).toEqual([1, `no-such-name.invalid:${callback.port}`]);
});
