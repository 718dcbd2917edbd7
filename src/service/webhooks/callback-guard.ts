import { lookup } from 'node:dns/promises';
import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import type { IPv4, IPv6 } from 'ipaddr.js';

// Not imported: Node would first read its source for what it exports, 25 ms of CPU for every command.
const ipaddr: typeof import('ipaddr.js') = createRequire(import.meta.url)('ipaddr.js');

/** A callback that is not called, or did not do what verification asks (6.2). The message is for whoever named the callback. */
export class CallbackRefused extends Error {}

type Ip = IPv4 | IPv6;

/** A block of addresses: an address in it and the length of what they share. */
export type AddressRange = [Ip, number];

export interface CallbackAddress {
  address: string;
  family: 4 | 6;
}

/** Every address of a name. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

/** Keeps callbacks away from everything that only this machine can reach: whoever may subscribe must not see into its network. */
export interface CallbackGuard {
  /** Reads a callback and judges what its text alone shows. Throws CallbackRefused. */
  parse(text: string): URL;
  /** The addresses of a host, all of them judged: connect to these and to no others. Throws CallbackRefused. */
  resolve(hostname: string, port: number): Promise<CallbackAddress[]>;
}

/** Where web servers listen. Other ports are other services, which an HTTP request can upset. */
const PORTS = [80, 443, 8080, 8443];

const MAX_URL_LENGTH = 2048;

/** @param allowed blocks that callbacks may lie in although they are not public, at any port */
export function createCallbackGuard(allowed: readonly AddressRange[], resolve: Resolve = lookUp): CallbackGuard {
  const isAllowed = (ip: Ip) => allowed.some(([start, bits]) => start.kind() === ip.kind() && ip.match(start, bits));

  const ofThisMachine = localAddresses.filter(address => isAllowed(ipaddr.parse(address)));

  function judge(addresses: readonly string[], port: number): CallbackAddress[] {
    if (addresses.length === 0) throw new CallbackRefused('its host has no address that is public');
    const judged = addresses.map(address => ({ address, carried: carriedBy(ipaddr.parse(address)) }));
    if (!judged.every(({ carried }) => carried.every(ip => isPublic(ip) || isAllowed(ip))))
      throw new CallbackRefused('its host has an address that is not public');
    if (!PORTS.includes(port) && !judged.every(({ carried }) => carried.every(isAllowed)))
      throw new CallbackRefused(`its port is ${port}; taken are ${PORTS.join(', ')}`);
    return judged.map(({ address }) => ({ address, family: isIP(address) === 6 ? 6 : 4 }));
  }

  return {
    parse(text) {
      if (text.length > MAX_URL_LENGTH) throw new CallbackRefused(`it is longer than ${MAX_URL_LENGTH} characters`);
      // The parser would drop them without a word.
      if (/[\s\p{Cc}]/u.test(text)) throw new CallbackRefused('it holds a blank or a control character');
      if (!URL.canParse(text)) throw new CallbackRefused('it is not a URL; it looks like https://example.com/webhook');
      const url = new URL(text);
      if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new CallbackRefused('only https: and http: are called');
      if (url.username || url.password) throw new CallbackRefused('it holds a user name or password');
      if (text.includes('#')) throw new CallbackRefused('it holds a fragment, which no request can carry');
      const port = portOf(url);
      const literal = findLiteral(url.hostname);
      if (literal !== undefined) judge([literal], port);
      else if (isLocalName(url.hostname)) judge(ofThisMachine, port);
      return url;
    },
    async resolve(hostname, port) {
      const literal = findLiteral(hostname);
      if (literal !== undefined) return judge([literal], port);
      if (isLocalName(hostname)) return judge(ofThisMachine, port);
      let addresses: readonly string[];
      try {
        addresses = await resolve(hostname);
      } catch (error) {
        throw new CallbackRefused('its host cannot be found', { cause: error });
      }
      return judge(addresses, port);
    },
  };
}

/** The range that a text like 10.0.0.0/8 or fd00::/8 names; undefined when it is none. */
export function findAddressRange(text: string): AddressRange | undefined {
  const valid = ipaddr.IPv4.isValidCIDRFourPartDecimal(text) || ipaddr.IPv6.isValidCIDR(text);
  return valid ? ipaddr.parseCIDR(text) : undefined;
}

/** Whether all of a block is IPv4 inside of IPv6: to allow it opens nothing, because the IPv4 addresses are what is judged. */
export function holdsOnlyCarried([start, bits]: AddressRange): boolean {
  return start instanceof ipaddr.IPv6 && CARRIERS.some(([carrier, length]) => bits >= length && start.match(carrier, length));
}

/** The port of an address or of an undici connection; empty: the scheme's own. */
export const portOf = ({ port, protocol }: { port: string; protocol: string }): number =>
  port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);

/** The address that a host is, whatever way it was written: the URL parser has brought it to one form. Without brackets. */
function findLiteral(hostname: string): string | undefined {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(bare) === 0 ? undefined : bare;
}

/** These names mean this machine whatever a resolver says (RFC 6761). */
const isLocalName = (hostname: string) => /(^|\.)localhost\.?$/i.test(hostname);
const localAddresses = ['127.0.0.1', '::1'];

const mapped = ipaddr.IPv6.parseCIDR('::ffff:0:0/96');
const nat64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');
const sixToFour = ipaddr.IPv6.parseCIDR('2002::/16');
const teredo = ipaddr.IPv6.parseCIDR('2001::/32');
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');
const CARRIERS = [mapped, nat64, sixToFour, teredo];

/** The addresses that a connection ends at: IPv6 can carry IPv4 in several ways (RFC 4291, 6052, 3056, 4380, 5214). */
function carriedBy(ip: Ip): Ip[] {
  if (!(ip instanceof ipaddr.IPv6)) return [ip];
  const { parts } = ip;
  const carried = (at: number, mask = 0) => {
    const [high, low] = parts.slice(at, at + 2).map(part => part ^ mask);
    if (high === undefined || low === undefined) throw new RangeError(`no part ${at} of ${ip}`);
    return new ipaddr.IPv4([high >> 8, high & 255, low >> 8, low & 255]);
  };
  if (ip.match(mapped) || ip.match(nat64)) return [carried(6)];
  if (ip.match(sixToFour)) return [carried(1)];
  if (ip.match(teredo)) return [carried(2), carried(6, 0xffff)];
  // ISATAP has a network of its owner's; with it the address itself must be public too.
  const [, , , , fifth = 0, sixth] = parts;
  if ((fifth & 0xfcff) === 0 && sixth === 0x5efe) return [ip, carried(6)];
  return [ip];
}

/** Looks public, and answers each machine of Azure from within, with its secrets. */
const AZURE = '168.63.129.16';

/** Outside of 2000::/3 nothing is public, also what the library has no name for, as ::127.0.0.1. */
function isPublic(ip: Ip): boolean {
  if (ip.toString() === AZURE) return false;
  return ip.range() === 'unicast' && (!(ip instanceof ipaddr.IPv6) || ip.match(globalUnicast));
}

const lookingUp = new Map<string, Promise<string[]>>();

/** One question for each name at a time: each unanswered one holds one of the few threads of this process. */
function lookUp(hostname: string): Promise<string[]> {
  const running =
    lookingUp.get(hostname) ??
    lookup(hostname, { all: true })
      .then(found => found.map(({ address }) => address))
      .finally(() => lookingUp.delete(hostname));
  lookingUp.set(hostname, running);
  return running;
}
