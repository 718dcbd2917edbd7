import { createHash, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { type Fetching, startFetching } from '../../jobs/process-event.ts';
import { resources } from '../../schema/index.ts';
import type { WireDocument } from '../../schema/resource.ts';
import type { WebhookEvent } from '../../schema/webhook.ts';
import { type Log, silentLog } from '../../src/base/log.ts';
import { Client } from '../../src/client/client.ts';
import { createServiceClock } from '../../src/client/service-clock.ts';
import { type Account, accountEntry } from '../../src/ledger/accounts.ts';
import { openRouteMemory } from '../../src/ledger/routes.ts';
import type { FillPace } from '../../src/queue/fill-queue.ts';
import { openQueues } from '../../src/queue/open.ts';
import type { Queue } from '../../src/queue/queues.ts';
import { createService } from '../../src/service/service.ts';
import type { ServiceSettings } from '../../src/service/settings.ts';
import { createAuthenticate, hashToken, type TokenState } from '../../src/service/tokens.ts';
import { collectionsOf } from '../../src/sync/collections.ts';
import { createAccept, eventQueue, openInbox } from '../../src/sync/events/accept-event.ts';
import type { EventLine, EventOptions } from '../../src/sync/events/advance-event.ts';
import type { Pipeline } from '../../src/sync/pipeline.ts';
import { Runs } from '../../src/sync/runs/runs.ts';
import { Warehouse } from '../../src/warehouse/warehouse.ts';
import { createLiteralSource, type Holdings } from '../service/literal-service.ts';
import { type FaultService, startFaultService } from './fault-service.ts';
import { until } from './until.ts';
import { placeWarehouse, rows } from './warehouse.ts';

/** The moment at which service and warehouse of these tests stand still. */
export const EVENTS_NOW = Date.parse('2025-03-10T15:30:00Z');

const SIGN_IN = { id: 'of a test', accessToken: '', refreshToken: null, expiresAt: null, refreshedAt: 0, previous: null };

export interface EventHarness {
  pipeline: Pipeline;
  /** What the service has, by its own id of the person: to be changed by the test. */
  holdings: Record<string, Holdings>;
  /** Between pipeline and service. */
  faults: FaultService;
  queue: Queue;
  lines: EventLine[];
  /** Whose heart rate was asked for, and about which day. */
  heartRateOf: string[];
  tokens: Map<string, string>;
  /** What people have allowed who have signed in. */
  granted: Map<string, readonly string[]>;
  start(): Promise<void>;
  /** Another person at the service, with an account here: `<name>`, at the service `service-<name>`. */
  person(name: string, documents: Record<string, WireDocument[]>): Promise<Person>;
  /** Until so many events in all are settled. */
  settled(count: number): Promise<void>;
  rows(sql: string): Promise<unknown[]>;
  close(): Promise<void>;
}

export interface Person {
  name: string;
  documents: Record<string, WireDocument[]>;
  announce(event: Partial<WebhookEvent>): Promise<void>;
  /** Announces and waits for the outcome. */
  tell(event: Partial<WebhookEvent>): Promise<EventLine>;
  /** Stores a document as a backfill does. */
  store(resource: string, documents: readonly WireDocument[]): Promise<void>;
  /** Outcomes and reasons of its events, in the order of their acceptance. */
  outcomes(): Promise<unknown[]>;
  account(changes: Partial<Account>): Promise<void>;
  setState(state: TokenState): void;
}

export interface EventHarnessOptions {
  settings?: Partial<ServiceSettings>;
  queueUrl?: string | undefined;
  log?: Log;
  beforeGroup?: () => void;
  /** The data folder; a new one unless given. */
  data?: string;
  /** Nothing is worked on before `start`. */
  later?: boolean;
}

/** Queue, warehouse and service, with the worker of events running; all of it real, but for the clock. */
export async function openEventHarness(folder: string, options: EventOptions & FillPace & EventHarnessOptions = {}): Promise<EventHarness> {
  const {
    settings = {},
    queueUrl,
    log = silentLog,
    beforeGroup = () => {},
    data = join(folder, randomUUID()),
    later = false,
    ...rest
  } = options;
  const now = () => EVENTS_NOW;
  const holdings: Record<string, Holdings> = {};
  const holders = new Map<string, { userId: string; state: TokenState }>();
  const service = createService({
    resources,
    source: createLiteralSource(holdings),
    authenticate: createAuthenticate(holders),
    settings: { rateLimit: 'off', appRateLimit: 'off', ...settings },
    clock: () => new Date(EVENTS_NOW),
    tokenKey: new Uint8Array(32).fill(7),
  });
  const upstream = await service.listen({ host: '127.0.0.1', port: 0 });
  const faults = await startFaultService({}, { upstream });
  placeWarehouse(join(data, 'warehouse.duckdb'));
  const warehouse = await Warehouse.open({ path: join(data, 'warehouse.duckdb'), resources, now, beforeGroup });
  const queues = await openQueues({ folder: join(data, 'queue'), log, ...(queueUrl ? { url: queueUrl } : {}) });
  const serviceClock = createServiceClock(now);
  const client = new Client({
    baseUrl: faults.url,
    serviceClock,
    wallNow: now,
    clock: warehouse.clock,
    retries: 0,
    sleep: async () => {},
    routes: await openRouteMemory(warehouse, faults.url, now, () => {}),
  });
  const tokens = new Map<string, string>();
  const granted: EventHarness['granted'] = new Map();
  const pipeline: Pipeline = {
    warehouse,
    client,
    queues,
    inbox: await openInbox(join(data, 'inbox'), warehouse, log),
    tokens: {
      find: userId => tokens.get(userId),
      isSame: (userId, token) => tokens.get(userId) === token,
      findSignIn: userId => {
        const scopes = granted.get(userId);
        return scopes && { ...SIGN_IN, scopes: [...scopes] };
      },
      whyMissing: userId => (tokens.has(userId) ? undefined : `no token: ringneck account add ${userId}`),
      digest: text => createHash('sha256').update(text).digest('hex'),
    },
    signIns: { renewRefused: async () => false },
    collections: collectionsOf(resources),
    runs: new Runs(),
    settledDays: 14,
    requestsPerToken: 4,
    retryDelayMs: 1,
    secondLookMs: 1,
    unreachedMs: 20_000,
    now,
    serviceClock,
    log,
    onFailure: Object.assign(() => {}, { close: async () => {} }),
  };
  const lines: EventLine[] = [];
  const heartRateOf: string[] = [];
  const name = await eventQueue(warehouse);
  let fetching: Fetching | undefined;
  const start = async () => {
    fetching = await startFetching(pipeline, {
      onEvent: line => lines.push(line),
      onHeartRate: userId => heartRateOf.push(userId),
      ...rest,
    });
  };
  if (!later) await start();
  const accept = createAccept(pipeline, key => fetching?.filling.add(key));

  const harness: EventHarness = {
    pipeline,
    holdings,
    faults,
    queue: queues.queue(name),
    lines,
    heartRateOf,
    tokens,
    granted,
    start,
    async person(user, documents) {
      const serviceUserId = `service-${user}`;
      holdings[serviceUserId] = { documents };
      holders.set(hashToken(`${user}-token`), { userId: serviceUserId, state: 'active' });
      tokens.set(user, `${user}-token`);
      const base: Account = { userId: user, serviceUserId, state: 'active', reason: null, since: 1_740_000_000_000_000 };
      await warehouse.record([accountEntry(base)]);
      const announce = (event: Partial<WebhookEvent>) =>
        accept({
          event_type: 'update',
          data_type: 'daily_spo2',
          object_id: 'spo2-1',
          event_time: '2025-03-10T16:00:00+01:00',
          user_id: serviceUserId,
          ...event,
        });
      return {
        name: user,
        documents,
        announce,
        async tell(event) {
          const before = lines.length;
          await announce(event);
          await harness.settled(before + 1);
          return lines[before]!;
        },
        async store(resource, stored) {
          const requestedAt = warehouse.clock.lease();
          await warehouse.storeDocuments({ userId: user, resource: warehouse.mapping(resource).resource, requestedAt, documents: stored });
          warehouse.clock.release(requestedAt);
        },
        outcomes: () =>
          rows(
            warehouse,
            `SELECT event_type, object_id, outcome, reason FROM sync.events WHERE service_user_id = '${serviceUserId}' ORDER BY received_at`,
          ),
        account: changes => warehouse.record([accountEntry({ ...base, ...changes })]),
        setState(state) {
          holders.set(hashToken(`${user}-token`), { userId: serviceUserId, state });
        },
      };
    },
    settled: count => until(`${count} events are settled, ${lines.length} are`, () => lines.length >= count),
    rows: sql => rows(warehouse, sql),
    async close() {
      await fetching?.filling.close();
      await queues.close({ graceMs: 500 });
      await pipeline.inbox.close();
      await client.close();
      await warehouse.close();
      await faults.close();
      await service.close();
    },
  };
  return harness;
}
