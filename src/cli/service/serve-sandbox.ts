import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { openDeliveries } from '../../../jobs/deliver-event.ts';
import { resources } from '../../../schema/index.ts';
import { heartRate } from '../../../schema/resources/heart-rate.ts';
import { checkFree } from '../../app/free-port.ts';
import { listening } from '../../app/listen.ts';
import { openControl, openLife } from '../../app/sandbox.ts';
import { UsageError } from '../../base/errors.ts';
import { ensureFolder } from '../../base/files.ts';
import { closeAll, interruptible } from '../../base/interrupt.ts';
import { ensureSecretKey } from '../../base/secrets/secrets.ts';
import { openQueues } from '../../queue/open.ts';
import { listRoutes } from '../../service/routes.ts';
import { createService } from '../../service/service.ts';
import type { ServiceSettings } from '../../service/settings.ts';
import { findServiceOptions, openServiceState } from '../../service/state.ts';
import { type AddressRange, CallbackRefused, createCallbackGuard } from '../../service/webhooks/callback-guard.ts';
import { openWebhooks } from '../../service/webhooks/webhooks.ts';
import { addAnswerFaults } from '../../simulator/answer-faults.ts';
import { createFaultSwitches, type FaultSwitches } from '../../simulator/faults.ts';
import { createPeople } from '../../simulator/users/people.ts';
import { refuseImpossible } from '../../sync/runs/backfill.ts';
import { openSession } from '../session.ts';
import { note } from '../terminal/note.ts';
import { formatTable, printJson, printLine, printLines } from '../terminal/print.ts';

export interface ServiceOptions {
  people?: number;
  from?: string;
  to?: string;
  seed?: number;
  port: number;
  host: string;
  json?: true;
  newTokens?: true;
  pageSize?: number;
  heartRatePageSize?: number;
  rateLimit?: ServiceSettings['rateLimit'];
  appRateLimit?: ServiceSettings['appRateLimit'];
  inclusiveEnd?: true;
  specificationOnly?: true;
  deliveryDelay: number;
  timeScale: number;
  allowCallback: AddressRange[];
  clockSpeed?: number;
  controlPort: number;
  fault?: FaultSwitches;
}

/** What the command line names; the rest is as at the first start. */
function given({ people, seed, from, to }: ServiceOptions): { people?: number; seed?: number; from?: string; to?: string } {
  return Object.fromEntries(Object.entries({ people, seed, from, to }).filter(([, value]) => value !== undefined));
}

/** Serves generated people until it is stopped; `first` is what a first start takes for what it is not told. */
export async function serveSandbox(options: ServiceOptions, first: { people: number; seed: number; from: string }): Promise<void> {
  const { settings, log } = await openSession({ follows: false });
  const folder = join(settings.data, 'service');
  ensureFolder(folder);
  const stored = findServiceOptions(folder);
  const asked = { ...first, ...stored, ...given(options) };
  const { people, seed, from, to }: { people: number; seed: number; from: string; to?: string } = asked;
  refuseImpossible({ from, to: to ?? from });
  if (to !== undefined && from > to) throw new UsageError(`--from ${from} is after --to ${to}`);
  const { persons } = createPeople({ seed, count: people, from, to: from });
  const newTokens = options.newTokens ?? false;
  const [address, controlAddress] = [
    { host: options.host, port: options.port },
    { host: '127.0.0.1', port: options.controlPort },
  ];
  if (!stored) {
    // Before tokens are made that are shown only once.
    await checkFree(address, '--port');
    await checkFree(controlAddress, '--control-port');
  }
  const state = openServiceState(folder, { people: persons, seed, from, ...(to === undefined ? {} : { to }), newTokens });
  const closing: (() => unknown)[] = [() => state.close()];
  let isUnshown = state.people.some(({ token }) => token !== null);
  try {
    const { timeScale, allowCallback: allowedRanges } = options;
    const webhooks = openWebhooks({
      folder,
      secretKey: ensureSecretKey(settings.data, settings.secretKey),
      newSecret: newTokens,
      headerPrefix: settings.headerPrefix,
      allowedRanges,
      timeScale,
      now: Date.now,
    });
    closing.push(() => webhooks.close());
    isUnshown ||= webhooks.client.isNew;
    if (allowedRanges.length > 0)
      log.info({ ranges: allowedRanges.map(formatRange).join(', ') }, 'callbacks may lie in these blocks of addresses');
    const queues = await openQueues({ url: settings.queueUrl, folder: join(folder, 'queue'), prefix: 'service', log });
    closing.push(() => queues.close());
    const deliveries = openDeliveries({
      ...{ queues, webhooks, timeScale, log },
      folder: join(folder, 'deliveries'),
      delayMs: options.deliveryDelay * 1000,
    });
    closing.push(() => deliveries.close());
    const { announce } = deliveries;
    const { fault: faults = createFaultSwitches(), deliveryDelay, clockSpeed: speed } = options;
    const life = openLife({ folder, seed, people, from, to, state, speed, faults, deliveryDelay, announce, log });
    closing.push(() => life.close());
    const served = settingsOf(options);
    const service = createService({
      resources,
      source: life.source,
      authenticate: state.authenticate,
      tokenKey: state.tokenKey,
      clock: () => new Date(life.clock.now()),
      realClock: () => new Date(),
      settings: served,
      log,
      webhooks,
      answersAsSpecified: () => faults.get('specification-only') ?? false,
    });
    addAnswerFaults(service, listRoutes({ resources, heartRate, ...served }), faults, seed);
    const url = await listening(address, '--port', service.listen(address));
    closing.push(() => service.close());
    const subscriptions = () => webhooks.subscriptions.list(webhooks.client.id).length;
    const { close, ...control } = await openControl({
      folder,
      port: options.controlPort,
      newSecret: newTokens,
      ...{ life, faults, state, subscriptions },
    });
    closing.push(close);
    const client = { id: webhooks.client.id, secret: webhooks.client.isNew ? webhooks.client.secret : null };
    if (options.json) printJson({ url, people: state.people, client, control });
    else printPeople(url, state.people, client, control, allowedRanges);
    isUnshown = false;
    await interruptible(signal => untilStopped(signal));
  } catch (error) {
    if (isUnshown) note('Tokens or secrets were made but not shown: start with --new-tokens, which makes and shows new ones.');
    throw error;
  } finally {
    await closeAll(closing);
    // The channel to the process that forked this one would keep it alive.
    if (process.connected) process.disconnect();
  }
}

function settingsOf(options: ServiceOptions): Partial<ServiceSettings> {
  return {
    ...(options.pageSize === undefined ? {} : { pageSize: options.pageSize }),
    ...(options.heartRatePageSize === undefined ? {} : { heartRatePageSize: options.heartRatePageSize }),
    ...(options.rateLimit === undefined ? {} : { rateLimit: options.rateLimit }),
    ...(options.appRateLimit === undefined ? {} : { appRateLimit: options.appRateLimit }),
    inclusiveEnd: options.inclusiveEnd ?? false,
    specificationOnly: options.specificationOnly ?? false,
  };
}

const formatRange = ([address, bits]: AddressRange) => `${address}/${bits}`;

const CALLBACK_URL = 'http://127.0.0.1:8080/webhook';

/** What another terminal needs to follow this service with webhooks, ready to be copied. */
function printSettings(url: string, id: string, secret: string, allowed: readonly AddressRange[]): void {
  printLine();
  printLine('To follow it from another terminal (`ringneck up` listens there):');
  for (const [name, value] of [
    ['RINGNECK_SERVICE_URL', url],
    ['RINGNECK_CLIENT_ID', id],
    ['RINGNECK_CLIENT_SECRET', secret],
    ['RINGNECK_CALLBACK_URL', CALLBACK_URL],
    ['RINGNECK_VERIFICATION_TOKEN', randomBytes(12).toString('hex')],
  ]) {
    printLine(`  export ${name}=${value}`);
  }
  if (refusesCallback(allowed))
    note('The service refuses this callback, which is on this machine, until it is started again with --allow-callback 127.0.0.0/8.');
}

function refusesCallback(allowed: readonly AddressRange[]): boolean {
  try {
    createCallbackGuard(allowed).parse(CALLBACK_URL);
    return false;
  } catch (error) {
    if (error instanceof CallbackRefused) return true;
    throw error;
  }
}

function printPeople(
  url: string,
  people: readonly { name: string; user_id: string; token: string | null }[],
  client: { id: string; secret: string | null },
  control: { url: string; secret: string | null },
  allowed: readonly AddressRange[],
): void {
  printLines(
    formatTable(
      ['name', 'user_id', 'token'],
      people.map(({ name, user_id, token }) => [name, user_id, token ?? '(as before)']),
    ),
  );
  printLine();
  printLine(`client ${client.id}, secret ${client.secret ?? '(as before)'}`);
  printLine(`control ${control.url}, secret ${control.secret ?? '(as before)'}`);
  printLine(`serving at ${url}, described at ${url}/docs`);
  if (client.secret !== null) printSettings(url, client.id, client.secret, allowed);
  if (people.some(({ token }) => token === null))
    note('Tokens and the client’s secret are shown once, when they are made; --new-tokens replaces them.');
}

/** Until Ctrl-C, SIGTERM, or the end of the process that forked this one. */
function untilStopped(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    signal.addEventListener('abort', () => resolve());
    process.once('disconnect', () => resolve());
  });
}
