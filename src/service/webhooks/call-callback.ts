import { setMaxListeners } from 'node:events';
import { Agent, buildConnector } from 'undici';
import { type CallbackGuard, CallbackRefused, portOf } from './callback-guard.ts';

/** The callback gave no whole answer in time, or none at all. */
export class CallbackUnanswered extends Error {}

export interface CallbackRequest {
  method: 'GET' | 'POST';
  url: URL;
  headers: Record<string, string>;
  body?: Buffer;
  /** More of the answer's body is not read. */
  maxBytes: number;
  signal?: AbortSignal | undefined;
}

export interface CallbackAnswer {
  status: number;
  contentType: string;
  /** Undefined when it was longer than `maxBytes`. */
  body: Buffer | undefined;
}

/** Calls a callback once; redirects are not followed. Throws CallbackRefused or CallbackUnanswered. */
export interface CallCallback {
  (request: CallbackRequest): Promise<CallbackAnswer>;
  close(): Promise<void>;
}

/** @param timeoutMs for the whole exchange, from the name's look-up to the last byte of the answer */
export function createCallCallback(guard: CallbackGuard, timeoutMs = 10_000): CallCallback {
  const agent = new Agent({ connect: guardedConnector(guard, timeoutMs), headersTimeout: 0, bodyTimeout: 0 });

  async function exchange({ method, url, headers, body, maxBytes }: CallbackRequest, signal: AbortSignal): Promise<CallbackAnswer> {
    const response = await agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method,
      headers: { ...headers, accept: 'application/json', 'accept-encoding': 'identity' },
      body: body ?? null,
      signal,
    });
    const contentType = response.headers['content-type'];
    return {
      status: response.statusCode,
      contentType: typeof contentType === 'string' ? contentType : '',
      body: await readAtMost(response.body, maxBytes),
    };
  }

  async function call(request: CallbackRequest): Promise<CallbackAnswer> {
    // `AbortSignal.any` would do, but on Node 20 it keeps memory for as long as its longest-lived source.
    const ending = new AbortController();
    let isLate = false;
    const late = setTimeout(() => {
      isLate = true;
      ending.abort();
    }, timeoutMs);
    const stop = () => ending.abort();
    const { signal } = request;
    if (signal?.aborted) stop();
    if (signal) {
      // One signal ends many calls; Node would warn of a leak at the eleventh.
      setMaxListeners(0, signal);
      signal.addEventListener('abort', stop, { once: true });
    }
    try {
      return await Promise.race([exchange(request, ending.signal), rejectWhen(ending.signal)]);
    } catch (error) {
      if (error instanceof CallbackRefused) throw error;
      if (isLate) throw new CallbackUnanswered(`it gave no whole answer within ${timeoutMs / 1000} s`);
      throw new CallbackUnanswered(`it gave no answer (${codeOf(error)})`, { cause: error });
    } finally {
      clearTimeout(late);
      signal?.removeEventListener('abort', stop);
    }
  }

  return Object.assign(call, { close: () => agent.destroy() });
}

/** Connects to an address that was judged a moment ago and to no other: a name that is asked again may answer otherwise. */
function guardedConnector(guard: CallbackGuard, timeout: number): buildConnector.connector {
  return (options, callback) => {
    guard.resolve(options.hostname, portOf(options)).then(
      addresses => {
        const connect = buildConnector({
          timeout,
          // Not asked for IP literals; `resolve` has judged those too.
          lookup: (_hostname, { all }, found) => {
            const [first] = addresses;
            if (all || !first) found(null, addresses);
            else found(null, first.address, first.family);
          },
        });
        connect(options, callback);
      },
      (error: Error) => callback(error, null),
    );
  };
}

async function readAtMost(stream: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.length;
    // Leaving the loop closes the connection.
    if (size > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** undici itself notices an aborted request only when the connection is there, however long that takes. */
function rejectWhen(ended: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => reject(ended.reason);
    if (ended.aborted) end();
    else ended.addEventListener('abort', end, { once: true });
  });
}

/** Never the message: it may quote the answer. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
