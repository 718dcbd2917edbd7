import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { resources } from '../../schema/index.ts';
import { serveControl } from '../../src/app/control/serve-control.ts';
import { silentLog } from '../../src/base/log.ts';
import { openReceiver, type Receiver } from '../../src/receiver/receiver.ts';
import { createService } from '../../src/service/service.ts';
import { findAddressRange } from '../../src/service/webhooks/callback-guard.ts';
import { openWebhooks, type Webhooks } from '../../src/service/webhooks/webhooks.ts';
import { createPeople } from '../../src/simulator/users/people.ts';
import { peopleSource } from '../../src/simulator/users/source.ts';
import type { SubscriptionManager } from '../../src/sync/subscriptions/subscription-manager.ts';
import { type Harness, type HarnessOptions, openHarness } from './harness.ts';

/** The first of these is the person’s. */
export const TOKENS = { person: 'token-of-ada', verification: 'not-for-logs-word', key: 'not-for-logs-key' };

export interface ListeningHarness {
  harness: Harness;
  manager: SubscriptionManager;
  webhooks: Webhooks;
  receiver: Receiver;
  /** Of a command in another process. */
  env: Record<string, string>;
  /** The service's own subscriptions, as `event_type data_type`. */
  subscribed(): string[];
  /** Gives the folder back; service and callback stay. */
  leave(): Promise<void>;
}

/** The real service with its webhooks, and a data folder whose owner listens at callback and control socket as `up` does, all in this process. */
export async function openListeningHarness(folder: string, options: Pick<HarnessOptions, 'queue'> = {}): Promise<ListeningHarness> {
  mkdirSync(join(folder, 'service'), { recursive: true, mode: 0o700 });
  const webhooks = openWebhooks({
    folder: join(folder, 'service'),
    secretKey: 'a key of at least sixteen characters',
    newSecret: false,
    headerPrefix: 'x-service-',
    allowedRanges: [findAddressRange('127.0.0.0/8')!],
    timeScale: 1,
    now: Date.now,
  });
  const people = createPeople({ count: 1, seed: 7, from: '2025-01-01', to: '2025-01-03' });
  const service = createService({
    resources,
    source: peopleSource(people),
    authenticate: token => (token === TOKENS.person ? { userId: people.persons[0]!.userId, state: 'active' } : undefined),
    tokenKey: randomBytes(32),
    clock: () => new Date(),
    settings: { closeTimeoutMs: 100 },
    webhooks,
  });
  const serviceUrl = await service.listen({ host: '127.0.0.1', port: 0 });

  let manager: SubscriptionManager | undefined;
  const receiver = await openReceiver(
    {
      ready: async () => {},
      webhook: {
        verificationToken: TOKENS.verification,
        secrets: [webhooks.client.secret],
        headerPrefix: 'x-service-',
        windowMs: 300_000,
        accept: async () => {},
        isGone: () => manager?.isGone() ?? false,
        noteGone: event => manager?.noteGone(event),
        now: Date.now,
        log: silentLog,
      },
    },
    { host: '127.0.0.1', port: 0 },
  );
  const env = {
    RINGNECK_DATA: folder,
    RINGNECK_SERVICE_URL: serviceUrl,
    RINGNECK_CALLBACK_URL: `${receiver.url}/webhook?key=${TOKENS.key}`,
    RINGNECK_CLIENT_ID: webhooks.client.id,
    RINGNECK_CLIENT_SECRET: webhooks.client.secret,
    RINGNECK_VERIFICATION_TOKEN: TOKENS.verification,
  };
  const callbackUrl = env.RINGNECK_CALLBACK_URL;
  const { id: clientId, secret: clientSecret } = webhooks.client;
  const settings = { webhooks: { callbackUrl, clientId, clientSecret, secrets: [clientSecret], verificationToken: TOKENS.verification } };
  const harness = await openHarness(folder, serviceUrl, { ...options, settings });
  manager = await harness.app.manager();
  const control = await serveControl({ folder, commands: harness.commands, log: silentLog });
  const leave = async () => {
    await control.close();
    await harness.close();
  };
  onTestFinished(async () => {
    await leave();
    await receiver.close();
    await service.close();
    await webhooks.close();
  });
  const subscribed = () =>
    webhooks.subscriptions
      .list(clientId)
      .map(({ event_type, data_type }) => `${event_type} ${data_type}`)
      .toSorted();
  return { harness, manager, webhooks, receiver, env, subscribed, leave };
}
