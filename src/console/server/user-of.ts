import { readFileSync } from 'node:fs';
import { isIPv6, type Socket } from 'node:net';
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

/** An end of a connection, in the forms that the tables have for it: the bytes of each word are turned round. */
function writtenAs(address = '', port = 0): string[] {
  const at = `:${port.toString(16).padStart(4, '0')}`.toUpperCase();
  const plain = /^(?:::ffff:)?(\d+(?:\.\d+){3})$/i.exec(address)?.[1];
  if (plain === undefined) return isIPv6(address) ? [`${wordsOf(groupsOf(address)).map(turned).join('')}${at}`] : [];
  const word = turned(plain.split('.').map(Number));
  return [`${word}${at}`, `${'0'.repeat(16)}FFFF0000${word}${at}`];
}

const turned = (bytes: readonly number[]) => Buffer.from(bytes).reverse().toString('hex').toUpperCase();

/** The eight groups of an address of IPv6; what is left out of it is 0, and its zone is none of them. */
function groupsOf(address: string): number[] {
  const [head = [], tail = []] = address
    .replace(/%.*/, '')
    .split('::')
    .map(part => part.split(':').filter(Boolean));
  const between = Array.from({ length: 8 - head.length - tail.length }, () => '0');
  return [...head, ...between, ...tail].map(group => Number.parseInt(group, 16));
}

/** The bytes of each two groups. */
const wordsOf = (groups: readonly number[]): number[][] =>
  [0, 2, 4, 6].map(at => groups.slice(at, at + 2).flatMap(group => [group >> 8, group & 0xff]));
