import type { ServiceAddress } from './base-url.ts';
import { findHeader, type Headers } from './retry-after.ts';
import type { ServiceResponse } from './transport.ts';

const NAME = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EAI_NODATA', 'EAI_NONAME']);
const DATES = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID']);
const CERTIFICATE = /CERT|LEAF_SIGNATURE|ISSUER/;
const NO_TLS = /^(ERR_SSL_|EPROTO)/;
const NO_HTTP = /^(HTTPParserError|HPE_|UND_ERR_SOCKET|ECONNRESET)/;

/** By this a server says that it speaks TLS alone: nginx and Go answer so to plain HTTP. */
export const speaksTlsAlone = (response: Pick<ServiceResponse, 'status' | 'body'>): boolean =>
  response.status === 400 && /HTTPS (port|server)/i.test(response.body);

/** A redirect with the origin that it leads to, where it names one: path and query may tell of a person. */
export function codeOfRedirect(headers: Headers): string {
  const location = findHeader(headers, 'location');
  const to = location !== undefined && URL.canParse(location) ? new URL(location) : undefined;
  return to && /^https?:$/.test(to.protocol) ? `redirect to ${to.origin}` : 'redirect';
}

/**
 * Why the service cannot be reached, and what may fix it: the end of a sentence that says that it cannot be.
 * @param code what the last attempt came to: a code of the system, of TLS or of undici, a redirect, `TLS` alone
 */
export function explainUnreachable({ origin }: ServiceAddress, code: string): string {
  const { protocol, hostname } = new URL(origin);
  const isPlain = protocol === 'http:';
  const because = (what: string, cure: string) => `${what} (${code}): ${cure}`;
  if (NAME.has(code)) return because(`nobody knows the name ${hostname}`, 'is RINGNECK_SERVICE_URL spelt right, and does DNS work?');
  if (code === 'ECONNREFUSED')
    return because(`nobody listens at ${origin}`, 'is it running, and is the port of RINGNECK_SERVICE_URL right?');
  if (DATES.has(code))
    return because(`the certificate of ${origin} is not valid today`, 'renew it there, or set the clock of this machine');
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return because(`the certificate at ${origin} is that of another name`, 'is RINGNECK_SERVICE_URL right?');
  }
  if (isPlain && (code.startsWith('redirect to https:') || code === 'TLS' || NO_HTTP.test(code))) {
    return because(`${origin} does not answer plain HTTP`, 'is https:// meant in RINGNECK_SERVICE_URL?');
  }
  if (/^redirect\b/.test(code)) return because(`${origin} sends elsewhere`, 'set RINGNECK_SERVICE_URL to the final address');
  if (NO_TLS.test(code)) return because(`${origin} does not speak TLS`, 'is http:// meant in RINGNECK_SERVICE_URL?');
  if (CERTIFICATE.test(code)) {
    return because(`nobody here trusts the certificate of ${origin}`, 'name the file of its authority in NODE_EXTRA_CA_CERTS');
  }
  return because(`${origin} gives no answer`, 'is RINGNECK_SERVICE_URL right, does a firewall or proxy stand between?');
}
