import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { findAddressRange } from '../../../src/service/webhooks/callback-guard.ts';
import { openWebhooks, type WebhookOptions, type Webhooks } from '../../../src/service/webhooks/webhooks.ts';
import { type Answer, startService } from '../literal-service.ts';

export const loopback = [findAddressRange('127.0.0.0/8')!, findAddressRange('::1/128')!];

export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ringneck-webhooks-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Webhooks whose callbacks may lie on loopback, in a folder of their own unless one is given. */
export function openTestWebhooks(options: Partial<WebhookOptions> = {}): Webhooks {
  const webhooks = openWebhooks({
    folder: options.folder ?? makeFolder(),
    secretKey: 'a key of at least 16 characters',
    newSecret: false,
    headerPrefix: 'x-service-',
    allowedRanges: loopback,
    timeScale: 1,
    now: Date.now,
    ...options,
  });
  onTestFinished(() => webhooks.close());
  return webhooks;
}

export interface WebhookService {
  url: string;
  webhooks: Webhooks;
  /** Asks with the client's credentials; `headers` come last and win. */
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
}

/** A service with webhooks and without data. */
export async function startWebhookService(options: Partial<WebhookOptions> = {}, specificationOnly = false): Promise<WebhookService> {
  const webhooks = openTestWebhooks(options);
  const { url } = await startService({ ada: { documents: {} } }, { specificationOnly }, { webhooks });
  return {
    url,
    webhooks,
    async ask(method, path, body, headers = {}) {
      const { id, secret } = webhooks.client;
      const response = await fetch(`${url}/v2/webhook/subscription${path}`, {
        method,
        headers: { 'x-client-id': id, 'x-client-secret': secret, 'content-type': 'application/json', ...headers },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      return { status: response.status, headers: response.headers, text, body: text === '' ? undefined : JSON.parse(text) };
    },
  };
}
