import Fastify, { type FastifyError, type FastifyReply, type FastifyRequest } from 'fastify';
import { limitConnections, MOST_CONNECTIONS } from '../base/connections.ts';
import type { ConnectOptions } from './connect/connect.ts';
import { Webhook, type WebhookOptions } from './webhook.ts';

export interface ReceiverOptions {
  /** Resolves when a write succeeds. */
  ready: () => Promise<void>;
  /** Whether it waits for another machine to end. */
  isStandby?: () => boolean;
  /** Without it there is no /webhook. */
  webhook?: WebhookOptions;
  /** Without it there is no /connect. */
  connect?: ConnectOptions;
  limits?: Partial<ReceiverLimits>;
}

export interface ReceiverLimits {
  /** Until a request must have arrived whole, from its first byte or from the connection's beginning. */
  requestMs: number;
  /** How long a connection may say nothing while it is in the middle of something. */
  silenceMs: number;
  /** How long a connection may stay unused between two requests. */
  idleMs: number;
  /** How long closing waits for requests under way. */
  closeMs: number;
  connections: number;
}

const defaultLimits: ReceiverLimits = {
  requestMs: 10_000,
  silenceMs: 30_000,
  // Longer than any usual proxy keeps an unused connection (nginx 60 s, Caddy 120 s): a request that meets our closing would be lost.
  idleMs: 130_000,
  closeMs: 5_000,
  connections: MOST_CONNECTIONS,
};

/** An address that nothing is at may be that of a secret link, with a character more. */
const UNKNOWN = { 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' };

export interface Receiver {
  url: string;
  /** Requests for /webhook that were refused, by reason. */
  refusals(): Readonly<Record<string, number>>;
  /** Events that were accepted. */
  accepted(): number;
  /** Exact repetitions of accepted events. */
  repeated(): number;
  /** Keys beyond those of 2.17 that accepted events had. */
  unknownKeys(): number;
  /** Takes no more requests and lets those under way come to their end. */
  close(): Promise<void>;
}

/** What `up` shows to the outside: whether it lives, whether it can store, and where events come in. */
export async function openReceiver(options: ReceiverOptions, address: { host: string; port: number }): Promise<Receiver> {
  const limits = { ...defaultLimits, ...options.limits };
  const receiver = Fastify({
    logger: false,
    // Who asks for a page is known by the word of a proxy, which is on this machine or in its network.
    trustProxy: ['loopback', 'linklocal', 'uniquelocal'],
    // Its own sentence would repeat the address.
    frameworkErrors: ({ statusCode = 400 }: FastifyError, _request: FastifyRequest, reply: FastifyReply) =>
      void reply.code(statusCode).headers(UNKNOWN).send({ detail: 'Bad Request' }),
    requestTimeout: limits.requestMs,
    connectionTimeout: limits.silenceMs,
    keepAliveTimeout: limits.idleMs,
    // Node looks only every 30 s by itself.
    http: { headersTimeout: limits.requestMs, requestTimeout: limits.requestMs, connectionsCheckingInterval: limits.requestMs / 5 },
  });
  limitConnections(receiver.server, limits.connections);
  const webhook = options.webhook && new Webhook(receiver, options.webhook);
  if (options.connect) {
    const { Connect } = await import('./connect/connect.ts');
    new Connect(receiver, options.connect);
  }
  receiver.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done();
    // Nobody reads its body: the connection would stay busy until it has arrived.
    reply.headers({ ...UNKNOWN, Connection: 'close' });
    if (webhook && request.url.split('?', 1)[0] === '/webhook') webhook.refuseMethod(reply);
    else reply.code(404).send({ detail: 'Not Found' });
  });
  let closing = false;
  receiver.addHook('onSend', (_request, reply, _payload, done) => {
    // Else its connection would be kept for a next request, and closing would wait for that.
    if (closing) reply.header('Connection', 'close');
    done();
  });
  receiver.addHook('preClose', async () => {
    closing = true;
    // From here on Node itself no longer cuts what is slow.
    const patience = setTimeout(() => receiver.server.closeAllConnections(), limits.closeMs);
    receiver.server.once('close', () => clearTimeout(patience));
  });
  receiver.get('/health', async () => ({ status: 'ok' }));
  receiver.get('/ready', async (_, reply) => {
    try {
      await options.ready();
      return { status: options.isStandby?.() ? 'standby' : 'ready' };
    } catch {
      // What is in the way names our files; whoever asks may be anybody.
      return reply.code(503).send({ status: 'not ready', reason: 'nothing can be written: the log says why' });
    }
  });
  const url = await receiver.listen(address);
  return {
    url,
    refusals: () => webhook?.refusals() ?? {},
    accepted: () => webhook?.accepted() ?? 0,
    repeated: () => webhook?.repeated() ?? 0,
    unknownKeys: () => webhook?.unknownKeys() ?? 0,
    close: async () => {
      await receiver.close();
      webhook?.close();
    },
  };
}
