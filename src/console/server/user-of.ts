import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { endianness } from 'node:os';

const found = new WeakMap<Socket, string>();

/**
 * Which user of this machine is at the other end of a connection, as a number. Empty where it is of elsewhere, or the system does not tell: by
 * its /proc Linux does.
 */
export function userOf(socket: Socket): string {
  const known = found.get(socket);
  if (known !== undefined) return known;
  const user = find(socket);
  found.set(socket, user);
  return user;
}

function find({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  if (process.platform !== 'linux' || endianness() !== 'LE') return '';
  const ends = [writtenAs(remoteAddress, remotePort), writtenAs(localAddress, localPort)];
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const line of linesOf(table)) {
      const [, from = '', to = '', , , , , user = ''] = line.trim().split(/\s+/);
      if (ends[0]?.includes(from) && ends[1]?.includes(to)) return user;
    }
  }
  return '';
}

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, 'latin1').split('\n');
  } catch {
    return [];
  }
}

/** An end of a connection on this machine, in the forms that the tables have for it: the bytes of each word are turned round. */
function writtenAs(address = '', port = 0): string[] {
  const at = `:${port.toString(16).padStart(4, '0')}`.toUpperCase();
  if (address === '::1') return [`${'0'.repeat(24)}01000000${at}`];
  const [, plain] = /^(?:::ffff:)?(127(?:\.\d+){3})$/.exec(address) ?? [];
  if (plain === undefined) return [];
  const turned = Buffer.from(plain.split('.').map(Number)).reverse().toString('hex').toUpperCase();
  return [`${turned}${at}`, `${'0'.repeat(16)}FFFF0000${turned}${at}`];
}
