import { onTestFinished } from 'vitest';
import type { WebhookEvent } from '../../schema/webhook.ts';
import { createLog } from '../../src/base/log.ts';
import { openReceiver, type ReceiverLimits } from '../../src/receiver/receiver.ts';
import type { WebhookOptions } from '../../src/receiver/webhook.ts';
import { WINDOW_MS } from './mutations.ts';
import { headersOf, NOW, SECRET, type Signed } from './signed.ts';

export const TOKEN = 'a-word-of-ours';

/** A receiver over loopback whose clock is the test's, with what it accepted and what it wrote. */
export async function openWebhook(changes: Partial<WebhookOptions> & { limits?: Partial<ReceiverLimits> } = {}) {
  const { limits, ...options } = changes;
  const clock = { ms: NOW };
  const events: WebhookEvent[] = [];
  const lines: string[] = [];
  const webhook: WebhookOptions = {
    verificationToken: TOKEN,
    secrets: [SECRET],
    headerPrefix: 'x-service-',
    windowMs: WINDOW_MS,
    accept: async event => void events.push(event),
    now: () => clock.ms,
    log: createLog({ level: 'trace', pretty: false, stream: { write: line => void lines.push(line) } }),
    ...options,
  };
  const ready = async () => {};
  const receiver = await openReceiver({ ready, webhook, ...(limits ? { limits } : {}) }, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => receiver.close());
  const send = (request: Signed) =>
    fetch(`${receiver.url}/webhook`, {
      method: 'POST',
      headers: headersOf(request).filter(([name]) => name !== 'Host'),
      body: new Uint8Array(request.body),
    });
  return { receiver, clock, events, lines, send };
}
