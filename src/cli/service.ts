import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { heartRate } from '../../schema/heart-rate.ts';
import { resources } from '../../schema/index.ts';
import { UsageError } from '../errors.ts';
import { ensureFolder } from '../files.ts';
import { ensureSecretKey } from '../secret-key.ts';
import { createPeople } from '../service/people/people.ts';
import { listRoutes } from '../service/routes.ts';
import { addAnswerFaults } from '../service/sandbox/answer-faults.ts';
import { controlHelp } from '../service/sandbox/control-help.ts';
import { createFaultSwitches, type FaultSwitches, faultHelp, WrongFault } from '../service/sandbox/faults.ts';
import type { ServiceSettings } from '../service/settings.ts';
import { findServiceOptions, openServiceState } from '../service/state.ts';
import { type AddressRange, findAddressRange, holdsOnlyCarried } from '../service/webhooks/callback-guard.ts';
import { checkFree } from './free-port.ts';
import { closeAll, interruptible } from './interrupt.ts';
import { listening } from './listen.ts';
import { parseDay, wholeNumber, withExample } from './options.ts';
import { formatTable, printJson, printLine, remark } from './print.ts';
import { openSession } from './session.ts';

interface Options {
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
  rateLimit?: { requests: number; seconds: number };
  appRateLimit?: { requests: number; seconds: number };
  inclusiveEnd?: true;
  specificationOnly?: true;
  deliveryDelay: number;
  timeScale: number;
  allowCallback: AddressRange[];
  clockSpeed?: number;
  controlPort: number;
  fault?: FaultSwitches;
}

/** What a first start takes for what it is not told. */
const FIRST = { people: 3, seed: 7, from: '2025-01-01' };

/** What the command line names; the rest is as at the first start. */
function given({ people, seed, from, to }: Options): { people?: number; seed?: number; from?: string; to?: string } {
  return Object.fromEntries(Object.entries({ people, seed, from, to }).filter(([, value]) => value !== undefined));
}

export function addService(program: Command): void {
  withExample(
    program
      .command('service')
      .description('serve the health-data service itself, over generated people')
      .option('--people <n>', `how many people (${FIRST.people})`, wholeNumber(1, 10_000))
      .option('--from <day>', `first day of their data (${FIRST.from})`, parseDay)
      .option('--to <day>', 'last day of their data, where the clock stands still (without one they live with the calendar)', parseDay)
      .option('--seed <n>', `which people (${FIRST.seed})`, wholeNumber(0, 4_294_967_295))
      .option('--port <port>', 'where to listen; 0 picks a free port', wholeNumber(0, 65_535), 4000)
      .option('--host <host>', 'where to listen', '127.0.0.1')
      .option('--json', 'print people, tokens and address as one line of JSON')
      .option('--new-tokens', 'give everybody a new token; the former ones are revoked')
      .option('--page-size <n>', 'documents on a page', wholeNumber(1, 10_000))
      .option('--heart-rate-page-size <n>', 'heart-rate rows on a page', wholeNumber(1, 100_000))
      .option('--rate-limit <n/seconds>', 'requests per token', parseRate)
      .option('--app-rate-limit <n/seconds>', 'requests of all tokens together', parseRate)
      .option('--inclusive-end', 'count the last day of a range in, for every collection')
      .option('--specification-only', 'serve only the routes of section 4 of the specification')
      .option('--delivery-delay <seconds>', 'from a change to the delivery of its event', wholeNumber(0, 86_400), 30)
      .option('--time-scale <n>', 'how much faster deliveries are tried again and subscriptions expire', wholeNumber(1, 1_000_000), 1)
      .option('--allow-callback <cidr>', 'let callbacks lie in this block of addresses, public or not; repeatable', addRange, [])
      .option(
        '--clock-speed <n>',
        'how fast the people live: 1 as the calendar, 0 not at all; with --to, on from that day',
        wholeNumber(0, 10_000),
      )
      .option('--control-port <port>', 'where the control route listens on this machine; 0 picks a free port', wholeNumber(0, 65_535), 0)
      .option('--fault <name[=value]>', 'begin with a fault; repeatable', addFault)
      .addHelpText(
        'after',
        `\nFaults:\n${faultHelp()}\n\nControl route, in JSON, with the header Authorization: Bearer <its secret>:\n${controlHelp}`,
      ),
    'ringneck service --people 3 --from 2025-01-01 --to 2025-12-31 --seed 7 --port 4000',
  ).action(async (options: Options) => {
    const { settings, log } = openSession();
    const folder = join(settings.data, 'service');
    ensureFolder(folder);
    const stored = findServiceOptions(folder);
    const asked = { ...FIRST, ...stored, ...given(options) };
    const { people, seed, from, to }: { people: number; seed: number; from: string; to?: string } = asked;
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
    const closing: (() => unknown)[] = [state.close];
    let isUnshown = state.people.some(({ token }) => token !== null);
    try {
      const [{ createService }, { openWebhooks }, { openQueues }, { openDeliveries }, sandbox] = await Promise.all([
        import('../service/service.ts'),
        import('../service/webhooks/webhooks.ts'),
        import('../queue/open.ts'),
        import('../../jobs/deliver-event.ts'),
        import('./sandbox.ts'),
      ]);
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
      closing.push(webhooks.close);
      isUnshown ||= webhooks.client.isNew;
      if (allowedRanges.length > 0) log.info({ ranges: allowedRanges.map(formatRange) }, 'callbacks may lie in these blocks of addresses');
      const queues = await openQueues({ url: settings.queueUrl, folder: join(folder, 'queue'), prefix: 'service', log });
      closing.push(queues.close);
      const deliveries = openDeliveries({ queues, webhooks, delayMs: options.deliveryDelay * 1000, timeScale, log });
      closing.push(deliveries.close);
      const { announce } = deliveries;
      const { fault: faults = createFaultSwitches(), deliveryDelay, clockSpeed: speed } = options;
      const life = sandbox.openLife({ folder, seed, people, from, to, state, speed, faults, deliveryDelay, announce, log });
      closing.push(life.close);
      const served = settingsOf(options);
      const service = createService({
        resources,
        source: life.source,
        authenticate: state.authenticate,
        tokenKey: state.tokenKey,
        clock: () => new Date(),
        settings: served,
        log,
        webhooks,
        answersAsSpecified: () => faults.get('specification-only') ?? false,
      });
      addAnswerFaults(service, listRoutes({ resources, heartRate, ...served }), faults, seed);
      const url = await listening(address, '--port', service.listen(address));
      closing.push(() => service.close());
      const subscriptions = () => webhooks.subscriptions.list(webhooks.client.id).length;
      const { close, ...control } = await sandbox.openControl({
        folder,
        port: options.controlPort,
        newSecret: newTokens,
        ...{ life, faults, state, subscriptions },
      });
      closing.push(close);
      const client = { id: webhooks.client.id, secret: webhooks.client.isNew ? webhooks.client.secret : null };
      if (options.json) printJson({ url, people: state.people, client, control });
      else printPeople(url, state.people, client, control);
      isUnshown = false;
      await interruptible(signal => untilStopped(signal));
    } catch (error) {
      if (isUnshown) remark('Tokens or secrets were made but not shown: start with --new-tokens, which makes and shows new ones.');
      throw error;
    } finally {
      await closeAll(closing);
      // The channel to the process that forked this one would keep it alive.
      if (process.connected) process.disconnect();
    }
  });
}

function settingsOf(options: Options): Partial<ServiceSettings> {
  return {
    ...(options.pageSize === undefined ? {} : { pageSize: options.pageSize }),
    ...(options.heartRatePageSize === undefined ? {} : { heartRatePageSize: options.heartRatePageSize }),
    ...(options.rateLimit === undefined ? {} : { rateLimit: options.rateLimit }),
    ...(options.appRateLimit === undefined ? {} : { appRateLimit: options.appRateLimit }),
    inclusiveEnd: options.inclusiveEnd ?? false,
    specificationOnly: options.specificationOnly ?? false,
  };
}

function parseRate(text: string): { requests: number; seconds: number } {
  const match = /^([1-9]\d{0,6})\/([1-9]\d{0,5})$/.exec(text);
  if (!match) throw new InvalidArgumentError('expected requests/seconds, like 300/60');
  return { requests: Number(match[1]), seconds: Number(match[2]) };
}

function addRange(text: string, before: AddressRange[]): AddressRange[] {
  const range = findAddressRange(text);
  if (!range) throw new InvalidArgumentError('expected a block of addresses, like 127.0.0.0/8 or fd00::/8');
  if (holdsOnlyCarried(range))
    throw new InvalidArgumentError('these hold IPv4 addresses and open nothing: expected the block of IPv4 itself, like 127.0.0.0/8');
  return [...before, range];
}

/** A fault with its value, as on the command line. */
function addFault(text: string, before: FaultSwitches = createFaultSwitches()): FaultSwitches {
  const [name = '', ...value] = text.split('=');
  try {
    before.set({ [name]: value.length > 0 ? value.join('=') : true });
  } catch (error) {
    if (error instanceof WrongFault) throw new InvalidArgumentError(error.message);
    throw error;
  }
  return before;
}

const formatRange = ([address, bits]: AddressRange) => `${address}/${bits}`;

/** What another terminal needs to follow this service with webhooks, ready to be copied. */
function printSettings(url: string, id: string, secret: string): void {
  printLine('\nTo follow it from another terminal (`ringneck up` listens there):');
  for (const [name, value] of [
    ['RINGNECK_SERVICE_URL', url],
    ['RINGNECK_CLIENT_ID', id],
    ['RINGNECK_CLIENT_SECRET', secret],
    ['RINGNECK_CALLBACK_URL', 'http://127.0.0.1:8080/webhook'],
    ['RINGNECK_VERIFICATION_TOKEN', randomBytes(12).toString('hex')],
  ]) {
    printLine(`  export ${name}=${value}`);
  }
}

function printPeople(
  url: string,
  people: readonly { name: string; user_id: string; token: string | null }[],
  client: { id: string; secret: string | null },
  control: { url: string; secret: string | null },
): void {
  printLine(
    formatTable(
      ['name', 'user_id', 'token'],
      people.map(({ name, user_id, token }) => [name, user_id, token ?? '(as before)']),
    ),
  );
  printLine();
  printLine(`client ${client.id}, secret ${client.secret ?? '(as before)'}`);
  printLine(`control ${control.url}, secret ${control.secret ?? '(as before)'}`);
  printLine(`serving at ${url}, described at ${url}/docs`);
  if (client.secret !== null) printSettings(url, client.id, client.secret);
  if (people.some(({ token }) => token === null))
    remark('Tokens and the client’s secret are shown once, when they are made; --new-tokens replaces them.');
}

/** Until Ctrl-C, SIGTERM, or the end of the process that forked this one. */
function untilStopped(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    signal.addEventListener('abort', () => resolve());
    process.once('disconnect', () => resolve());
  });
}
