import { isUtf8 } from 'node:buffer';
import { type Dispatcher, Pool } from 'undici';
import type { ServiceAddress } from './base-url.ts';
import { findHeader, type Headers } from './retry-after.ts';

export interface ServiceResponse {
  status: number;
  headers: Headers;
  bytes: Buffer;
  /** The bytes as text, made when first asked for. */
  readonly body: string;
}

function answerOf(status: number, headers: Headers, bytes: Buffer): ServiceResponse {
  let text: string | undefined;
  return {
    status,
    headers,
    bytes,
    get body() {
      text ??= bytes.toString();
      return text;
    },
  };
}

/** An attempt that brought no whole answer. */
export class TransportError extends Error {
  readonly kind: 'unavailable' | 'malformed' | 'too_large' | 'stopped';
  /** Whether asking again may help. */
  readonly again: boolean;
  /** What the connection came to, where nothing of an answer came. */
  readonly code: string | undefined;

  constructor(kind: TransportError['kind'], message: string, again = true, code?: string) {
    super(message);
    this.kind = kind;
    this.again = again;
    this.code = code;
  }
}

export interface TransportLimits {
  /** For one attempt, from sending to the last byte: undici's own `bodyTimeout` does not stop a drip feed. */
  deadlineMs: number;
  /** For a connection to come about: 10 seconds unless given, and no more than `deadlineMs`. */
  connectMs?: number | undefined;
  maxResponseBytes: number;
  connections: number;
}

/** What goes out, with header names and values in turn. */
interface Message {
  method: Dispatcher.HttpMethod;
  path: string;
  headers: string[];
  body?: string;
}

/** The code of an attempt whose whole time went by without an answer. */
export const LATE = 'ETIMEDOUT';

/** The body of an error page is only looked at for a sentence. */
const MAX_ERROR_BYTES = 65_536;

/** Keep-alive connections to one service. */
export class Transport {
  readonly #path: string;
  readonly #limits: TransportLimits;
  readonly #pool: Pool;

  constructor({ origin, path }: ServiceAddress, limits: TransportLimits) {
    this.#path = path;
    this.#limits = limits;
    this.#pool = new Pool(origin, {
      connections: limits.connections,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { timeout: Math.min(limits.deadlineMs, limits.connectMs ?? 10_000) },
    });
  }

  /**
   * Asks once. Redirects are not followed; an answer other than 2xx comes back as it is, its body where that could be read.
   * @param onConnected there is a connection, and the request goes out on it
   */
  get(path: string, token: string, signal: AbortSignal, onConnected?: () => void): Promise<ServiceResponse> {
    return this.send({ method: 'GET', path, headers: ['authorization', `Bearer ${token}`] }, signal, onConnected);
  }

  /** Like `get`, with any method, headers and body. */
  send({ method, path, headers, body }: Message, signal: AbortSignal, onConnected?: () => void): Promise<ServiceResponse> {
    return new Promise((resolve, reject) => {
      this.#pool.dispatch(
        {
          method,
          path: this.#path + path,
          headers: [...headers, 'accept', 'application/json', 'accept-encoding', 'identity', 'cache-control', 'no-cache'],
          ...(body === undefined ? {} : { body }),
        },
        new Attempt(this.#limits, signal, onConnected, resolve, reject),
      );
    });
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }
}

/** What undici tells of one request, until its whole answer is there or none can come. */
class Attempt implements Dispatcher.DispatchHandler {
  readonly #limits: TransportLimits;
  readonly #signal: AbortSignal;
  readonly #onConnected: (() => void) | undefined;
  readonly #resolve: (response: ServiceResponse) => void;
  readonly #reject: (error: Error) => void;
  readonly #deadline: NodeJS.Timeout;
  readonly #stop = () => this.#fail(new TransportError('stopped', 'stopped', false));
  #finished = false;
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: Headers = {};
  #size = 0;
  readonly #chunks: Buffer[] = [];

  constructor(
    limits: TransportLimits,
    signal: AbortSignal,
    onConnected: (() => void) | undefined,
    resolve: (response: ServiceResponse) => void,
    reject: (error: Error) => void,
  ) {
    this.#limits = limits;
    this.#signal = signal;
    this.#onConnected = onConnected;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#deadline = setTimeout(() => this.#failLate(), limits.deadlineMs);
    signal.addEventListener('abort', this.#stop, { once: true });
  }

  onRequestStart(started: Dispatcher.DispatchController): void {
    this.#controller = started;
    if (this.#finished) started.abort(new TransportError('stopped', 'nobody waits for it any more', false));
    else this.#onConnected?.();
  }

  onResponseStart(_: Dispatcher.DispatchController, code: number, received: Headers): void {
    if (code < 200) return;
    this.#status = code;
    this.#headers = received;
    if (code < 300 && Number(received['content-length']) > this.#limits.maxResponseBytes) this.#fail(tooLarge(this.#limits));
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > (this.#status < 300 ? this.#limits.maxResponseBytes : MAX_ERROR_BYTES)) this.#fail(tooLarge(this.#limits));
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    const [first, second] = this.#chunks;
    const body = first && !second ? first : Buffer.concat(this.#chunks, this.#size);
    // Decoded as it is, every byte that is none would become the same sign, in identifiers too.
    if (!isUtf8(body)) this.#fail(new TransportError('malformed', `answered ${this.#status} with bytes that are not UTF-8`));
    else if (this.#finish()) this.#resolve(answerOf(this.#status, this.#headers, body));
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    if (!isRefusedByUndici(error)) this.#fail(brokenOff(error, this.#status > 0));
    else if (this.#finish()) this.#reject(error);
  }

  #failLate(): void {
    const message = `no whole answer within ${this.#limits.deadlineMs / 1000} s`;
    this.#fail(new TransportError('unavailable', message, true, this.#status ? undefined : LATE));
  }

  /** Fails, unless a status other than 2xx is known: that says more than what became of its body. */
  #fail(error: TransportError): void {
    if (this.#finish()) {
      if (this.#status >= 300 && error.kind !== 'stopped') this.#resolve(answerOf(this.#status, this.#headers, Buffer.alloc(0)));
      else this.#reject(error);
    }
    this.#controller?.abort(error);
  }

  /** Whether this is the first outcome: the only one that counts. */
  #finish(): boolean {
    if (this.#finished) return false;
    this.#finished = true;
    clearTimeout(this.#deadline);
    this.#signal.removeEventListener('abort', this.#stop);
    return true;
  }
}

function tooLarge(limits: TransportLimits): TransportError {
  return new TransportError('too_large', `the answer is larger than ${limits.maxResponseBytes} bytes`, false);
}

/** A mistake of ours, which must not look like trouble of the network. */
function isRefusedByUndici(error: Error & { code?: unknown }): boolean {
  return error.code === 'UND_ERR_INVALID_ARG' || error instanceof TypeError;
}

function brokenOff(error: Error & { code?: unknown }, started: boolean): TransportError {
  const code = typeof error.code === 'string' ? error.code : error.name;
  if (started) return new TransportError('malformed', `the answer was cut off (${code})`);
  if (error.name === 'HTTPParserError' || code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new TransportError('malformed', `the answer is not HTTP (${code})`, true, code);
  }
  return new TransportError('unavailable', `no answer (${code})`, true, code);
}

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
