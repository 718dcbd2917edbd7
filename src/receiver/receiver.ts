import Fastify from 'fastify';
import { messageOf } from '../errors.ts';

export interface ReceiverOptions {
  /** Resolves when a write succeeds; rejects with what is in the way. */
  ready: () => Promise<void>;
}

/** What `up` shows to the outside: whether it lives, and whether it can store. */
export async function openReceiver(
  { ready }: ReceiverOptions,
  address: { host: string; port: number },
): Promise<{ url: string; close(): Promise<void> }> {
  const receiver = Fastify({ logger: false, bodyLimit: 65_536, requestTimeout: 10_000, connectionTimeout: 30_000 });
  receiver.get('/health', async () => ({ status: 'ok' }));
  receiver.get('/ready', async (_, reply) => {
    try {
      await ready();
      return { status: 'ready' };
    } catch (error) {
      return reply.code(503).send({ status: 'not ready', reason: messageOf(error) });
    }
  });
  const url = await receiver.listen(address);
  return { url, close: () => receiver.close() };
}
