import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { resources } from '../../schema/index.ts';
import { addDays } from '../../schema/instant.ts';
import { App } from '../../src/app/app.ts';
import { accountEntry } from '../../src/ledger/accounts.ts';
import type { RunRequest } from '../../src/ledger/runs.ts';
import { openSettings } from '../folder.ts';
import { performTask, withCost } from '../task.ts';

export interface PlanJob {
  data: string;
  accounts: number;
  /** The years of each of them up to here. */
  years: number;
  to: string;
}

export interface Planned {
  windows: number;
  /** Seconds until the run was planned and its first windows were in the queue. */
  wall: number;
  /** Of the process, bytes. */
  peak: number;
  /** How long each live write took meanwhile, milliseconds. */
  writes: number[];
}

const WRITE_EVERY_MS = 20;
const LIVE = { userId: 'user-1', resource: resources.find(({ name }) => name === 'daily_sleep')!, lane: 'live' as const };

/** Plans a backfill in a folder of its own, while documents of events are stored. The service says nothing: nothing is fetched. */
performTask(async ({ data, accounts, years, to }: PlanJob): Promise<Planned> => {
  const service = await listen();
  const { port } = service.address() as AddressInfo;
  const { settings, log } = openSettings({ data, url: `http://127.0.0.1:${port}` });
  const users = Array.from({ length: accounts }, (_, n) => `user-${n + 1}`);
  const app = await App.open({ settings, log });
  try {
    const since = Date.now() * 1000;
    await app.warehouse.record(users.map(userId => accountEntry({ userId, serviceUserId: null, state: 'active', reason: null, since })));
    const { runs, collections } = await app.pipeline();
    const from = addDays(to, 1 - Math.round(years * 365.25));
    const request: RunRequest = { kind: 'backfill', users, collections: collections.map(({ name }) => name), from, to, refresh: false };
    const writes: number[] = [];
    const planned = new AbortController();
    const writing = writeUntil(planned.signal, app, writes);
    const { cost, result: run } = await withCost(() => runs.start(request));
    planned.abort();
    await writing;
    run.suspend(new Error('only planned'));
    return { windows: run.progress.windows.planned, wall: cost.wall, peak: cost.peak, writes };
  } finally {
    await app.close();
    service.close();
    service.closeAllConnections();
  }
});

async function writeUntil(planned: AbortSignal, { warehouse }: App, writes: number[]): Promise<void> {
  for (let n = 0; !planned.aborted; n++) {
    const requestedAt = warehouse.clock.lease();
    // From when it would have been sent: a process that is busy with something else lets it wait too.
    const due = performance.now();
    const document = { id: `event-${n}`, day: '2025-01-01', timestamp: '2025-01-01T00:00:00.000+00:00', score: 50, contributors: {} };
    await new Promise(resolve => setImmediate(resolve));
    await warehouse.storeDocuments({ ...LIVE, requestedAt, documents: [document] }, { lane: LIVE.lane });
    warehouse.clock.release(requestedAt);
    writes.push(performance.now() - due);
    const wake = performance.now() + WRITE_EVERY_MS;
    await sleep(WRITE_EVERY_MS);
    writes[writes.length - 1]! += Math.max(0, performance.now() - wake);
  }
}

async function listen(): Promise<Server> {
  const service = createServer(() => {}).listen(0, '127.0.0.1');
  await once(service, 'listening');
  return service;
}
