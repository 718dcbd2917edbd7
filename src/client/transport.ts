import { isUtf8 } from 'node:buffer';
import { type Dispatcher, Pool } from 'undici';
import type { ServiceAddress } from './base-url.ts';
import type { Headers } from './retry-after.ts';

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
  maxResponseBytes: number;
  connections: number;
}

export interface Transport {
  /**
   * Asks once. Redirects are not followed; an answer other than 2xx comes back as it is, its body where that could be read.
   * @param onConnected there is a connection, and the request goes out on it
   */
  get(path: string, token: string, signal: AbortSignal, onConnected?: () => void): Promise<ServiceResponse>;
  /** Like `get`, with any method, headers (names and values in turn) and body. */
  send(
    request: { method: Dispatcher.HttpMethod; path: string; headers: string[]; body?: string },
    signal: AbortSignal,
    onConnected?: () => void,
  ): Promise<ServiceResponse>;
  close(): Promise<void>;
}

/** The code of an attempt whose whole time went by without an answer. */
export const LATE = 'ETIMEDOUT';

/** The body of an error page is only looked at for a sentence. */
const MAX_ERROR_BYTES = 65_536;

/** Keep-alive connections to one service. */
export function createTransport(address: ServiceAddress, limits: TransportLimits): Transport {
  const pool = new Pool(address.origin, {
    connections: limits.connections,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: Math.min(limits.deadlineMs, 10_000) },
  });

  return {
    get(path, token, signal, onConnected) {
      return this.send({ method: 'GET', path, headers: ['authorization', `Bearer ${token}`] }, signal, onConnected);
    },
    send: ({ method, path, headers: own, body }, signal, onConnected) =>
      new Promise((resolve, reject) => {
        let finished = false;
        let controller: Dispatcher.DispatchController | undefined;
        let status = 0;
        let headers: Headers = {};
        let size = 0;
        const chunks: Buffer[] = [];

        const finish = (outcome: () => void) => {
          if (finished) return;
          finished = true;
          clearTimeout(deadline);
          signal.removeEventListener('abort', stop);
          outcome();
        };
        /** Fails, unless a status other than 2xx is known: that says more than what became of its body. */
        const fail = (error: TransportError) => {
          finish(() => (status >= 300 && error.kind !== 'stopped' ? resolve(answerOf(status, headers, Buffer.alloc(0))) : reject(error)));
          controller?.abort(error);
        };
        const stop = () => fail(new TransportError('stopped', 'stopped', false));
        const late = () =>
          fail(new TransportError('unavailable', `no whole answer within ${limits.deadlineMs / 1000} s`, true, status ? undefined : LATE));
        const deadline = setTimeout(late, limits.deadlineMs);
        signal.addEventListener('abort', stop, { once: true });

        pool.dispatch(
          {
            method,
            path: address.path + path,
            headers: [...own, 'accept', 'application/json', 'accept-encoding', 'identity', 'cache-control', 'no-cache'],
            ...(body === undefined ? {} : { body }),
          },
          {
            onRequestStart(started) {
              controller = started;
              if (finished) started.abort(new TransportError('stopped', 'nobody waits for it any more', false));
              else onConnected?.();
            },
            onResponseStart(_, code, received) {
              if (code < 200) return;
              status = code;
              headers = received;
              if (code < 300 && Number(received['content-length']) > limits.maxResponseBytes) fail(tooLarge(limits));
            },
            onResponseData(_, chunk) {
              size += chunk.length;
              if (size > (status < 300 ? limits.maxResponseBytes : MAX_ERROR_BYTES)) fail(tooLarge(limits));
              else chunks.push(chunk);
            },
            onResponseEnd() {
              const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size);
              // Decoded as it is, every byte that is none would become the same sign, in identifiers too.
              if (isUtf8(body)) finish(() => resolve(answerOf(status, headers, body)));
              else fail(new TransportError('malformed', `answered ${status} with bytes that are not UTF-8`));
            },
            onResponseError(_, error) {
              if (isRefusedByUndici(error)) finish(() => reject(error));
              else fail(brokenOff(error, status > 0));
            },
          },
        );
      }),
    close: () => pool.destroy(),
  };
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
