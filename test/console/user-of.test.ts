import { once } from 'node:events';
import { connect, createServer, isIPv4, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { expect, onTestFinished, test } from 'vitest';
import { userOf } from '../../src/console/server/user-of.ts';

/** The server's end of a connection from one address of this machine to another. */
async function connected(listening: string, to: string): Promise<Socket> {
  const server = createServer().listen(0, listening);
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const client = connect(port, to);
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  const [[socket]] = await Promise.all([once(server, 'connection'), once(client, 'connect')]);
  return socket as Socket;
}

const ours = String(process.getuid?.());
const outward = Object.values(networkInterfaces()).flatMap(all =>
  (all ?? []).flatMap(({ address, internal, scopeid }) => (internal || scopeid ? [] : [address])),
);
const hasIpv6 = Object.values(networkInterfaces()).some(all => all?.some(({ address }) => address === '::1'));

test.skipIf(process.platform !== 'linux')('who connects from this machine is known, by each address that is its own', async () => {
  expect(userOf(await connected('127.0.0.1', '127.0.0.1'))).toBe(ours);
  expect(userOf(await connected('0.0.0.0', '127.0.0.2'))).toBe(ours);
  // By its address in a network too, which browsers know as another host.
  for (const own of outward) expect(userOf(await connected(own, own))).toBe(ours);
  for (const own of outward.filter(isIPv4)) expect(userOf(await connected('0.0.0.0', own))).toBe(ours);
  if (!hasIpv6) return;
  expect(userOf(await connected('::1', '::1'))).toBe(ours);
  expect(userOf(await connected('::', '127.0.0.1'))).toBe(ours);
});

test('who connects from elsewhere is nobody of this machine', () => {
  const from = { remoteAddress: '192.0.2.1', remotePort: 1, localAddress: '192.0.2.2', localPort: 2 } as Socket;
  expect([userOf(from), userOf({} as Socket)]).toEqual(['', '']);
});
