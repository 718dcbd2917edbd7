import { join } from 'node:path';
import { resources } from '../../schema/index.ts';
import { isoOf } from '../../schema/instant.ts';
import { dataTypesOf } from '../../schema/resource.ts';
import { environment, NO_SERVICE, NO_WEBHOOKS, type Settings } from '../base/config.ts';
import { messageOf, RingneckError, TryLaterError, UsageError } from '../base/errors.ts';
import { ensureFolder } from '../base/files.ts';
import { closeAll } from '../base/interrupt.ts';
import type { Inbox } from '../base/journal.ts';
import type { Log } from '../base/log.ts';
import { createOnFailure, type FailureCommand } from '../base/on-failure.ts';
import { type MirrorTokens, openMirrorTokens } from '../base/secrets/mirror-tokens.ts';
import { Secrets } from '../base/secrets/secrets.ts';
import { warehouseIn } from '../base/warehouse-file.ts';
import type { Client } from '../client/client.ts';
import { openRouteMemory } from '../ledger/routes.ts';
import type { CommonInbox } from '../machines/inbox.ts';
import type { Queues } from '../queue/queues.ts';
import type { SignIns, Unwritten } from '../sign-in/sign-ins.ts';
import { collectionsOf } from '../sync/collections.ts';
import { UNCLEAR } from '../sync/generated-heart-rate.ts';
import type { Collection, Pipeline } from '../sync/pipeline.ts';
import { Runs, warehouseId } from '../sync/runs/runs.ts';
import { type KeptServiceClock, openServiceClock } from '../sync/service-clock.ts';
import { leaveSilence } from '../sync/silence.ts';
import type { SubscriptionManager } from '../sync/subscriptions/subscription-manager.ts';
import { Warehouse } from '../warehouse/warehouse.ts';
import type { AppOptions, ConsoleLinks, PausedErasing, StandbyOptions } from './app-options.ts';
import { ensureRestored } from './backup/restoring.ts';
import { findNewestAhead } from './doctor/clock.ts';
import { isErasing } from './erase/is-erasing.ts';
import { InHand } from './in-hand.ts';
import { findHeld, holdLake, QUEUES_OF_LAKE } from './lake/hold.ts';
import { ensureDisks, lakeOf } from './lake/place.ts';
import { type Doing, isMoving, tellClosed } from './move/is-moving.ts';
import { openEvents } from './open-events.ts';
import { RecentEvents } from './recent-events.ts';
import { openSignIns } from './sign-ins.ts';
import { Snapshots } from './snapshot/snapshots.ts';

const ENDING = 'ringneck is ending; try again in a moment';
const RETRY_DELAY_MS = 5_000;
const SECOND_LOOK_MS = 5_000;
const UNREACHED_MS = 15_000;

interface OpenedParts {
  warehouse: Warehouse;
  serviceClock: KeptServiceClock;
  erasing: PausedErasing | undefined;
  /** Lets another machine have the lake. */
  release: (() => Promise<void>) | undefined;
}

/** @throws UsageError where RINGNECK_ON_FAILURE cannot be read */
export const openOnFailure = ({ settings, log, now = Date.now }: Pick<AppOptions, 'settings' | 'log' | 'now'>): FailureCommand =>
  createOnFailure({ command: settings.onFailure, env: environment, log, now });

/** The process that owns the data folder, with what it has open. Client and queue are loaded and opened when first needed. */
export class App {
  readonly settings: Settings;
  readonly log: Log;
  readonly warehouse: Warehouse;
  readonly secrets: Secrets;
  readonly mirrorTokens: MirrorTokens;
  readonly snapshots: Snapshots;
  readonly now: () => number;
  readonly serviceClock: KeptServiceClock;
  readonly onFailure: FailureCommand;
  readonly recentEvents = new RecentEvents();
  /** Sign-ins that are being made, renewed or taken back. */
  readonly inHand = new InHand();
  /** Of who was erased; they are waited for once the folder is closed for good. */
  readonly ofErased: InHand;
  /** Renewed sign-ins that are on no disk yet. */
  readonly unwritten: Unwritten;
  /** What the receiver refused since it listens, by reason. */
  refusals: () => Readonly<Record<string, number>> = () => ({});
  /** The console that is served meanwhile. */
  console: ConsoleLinks | undefined;
  /** An erasing that is begun and waits, for Redis for one: until it is done events may be accepted, and nothing else is read or written of anybody. */
  readonly erasing: PausedErasing | undefined;
  /** What keeps the queue from being opened; undefined when nothing does, and before it was tried. */
  queueProblem: string | undefined;
  /** Does work on the folder while nothing in it is open. Who keeps the owner says whether it is opened again. */
  withExclusive: <T>(work: () => Promise<T>, doing?: Doing) => Promise<T> = async work => {
    const release = await holdLake(this.#options);
    try {
      await this.close();
      return await work();
    } finally {
      await release?.();
    }
  };
  readonly #options: AppOptions;
  #client: Promise<Client> | undefined;
  #rawClient: Promise<Client> | undefined;
  #signIns: Promise<SignIns> | undefined;
  #openedSignIns: SignIns | undefined;
  #manager: Promise<SubscriptionManager> | undefined;
  #inbox: Promise<Inbox | CommonInbox> | undefined;
  #pipeline: Promise<Pipeline> | undefined;
  /** Those of a pipeline that is not open yet. */
  #opening: Queues | undefined;
  #closing: Promise<void> | undefined;
  readonly #release: (() => Promise<void>) | undefined;
  readonly #ending = new AbortController();

  private constructor(options: AppOptions, parts: OpenedParts) {
    const { warehouse, serviceClock, erasing, release } = parts;
    this.#options = options;
    this.#release = release;
    this.erasing = erasing;
    this.ofErased = options.ofErased ?? new InHand();
    this.unwritten = options.unwritten ?? new Map();
    this.settings = options.settings;
    this.log = options.log;
    this.now = options.now ?? Date.now;
    this.onFailure = options.onFailure ?? openOnFailure(options);
    this.warehouse = warehouse;
    this.serviceClock = serviceClock;
    const { data: folder, secretKey: key, serviceUrl: address, signIn } = options.settings;
    this.secrets = new Secrets({
      folder,
      key,
      address,
      signIn,
      onBound: account => this.log.warn({ account, address }, 'a token that was kept without an address belongs to this one from now on'),
    });
    this.mirrorTokens = openMirrorTokens(options.settings.data);
    this.snapshots = new Snapshots(this);
  }

  /** @throws TryLaterError naming the process that holds the warehouse */
  static async open(options: AppOptions): Promise<App> {
    ensureFolder(options.settings.data);
    ensureRestored(options.settings.data);
    if (options.standby) return App.#openReader(options, options.standby);
    const release = await holdLake(options);
    try {
      return await App.#openHeld(options, release);
    } catch (error) {
      await release?.();
      throw error;
    }
  }

  static async #openHeld(options: AppOptions, release: OpenedParts['release']): Promise<App> {
    const { settings, log, now } = options;
    const isLeft = isErasing(settings.data) || isMoving(settings.data);
    const erasing = isLeft ? await App.#finishInterrupted(options) : undefined;
    let opened: App | undefined;
    const warehouse = await Warehouse.open({
      path: warehouseIn(settings.data),
      ...lakeOf(settings),
      resources,
      ...(now ? { now } : {}),
      beforeGroup: () => ensureDisks(settings),
      onUpgrade: message => log.warn(message),
      onMended: message => log.error(`${message}. ringneck doctor checks what is stored`),
      onFatal: error => {
        // Nothing more can be stored by this process: whoever supervises it starts a new one.
        log.fatal({ reason: messageOf(error) }, 'the warehouse failed');
        const exitCode = error instanceof RingneckError ? error.exitCode : 1;
        if (opened) void opened.#exit(exitCode);
        else process.exit(exitCode);
      },
      onUnclearHeartRate: () => log.warn(UNCLEAR),
    });
    try {
      opened = await App.#openOver({ warehouse, release, erasing }, options);
      return opened;
    } catch (error) {
      await warehouse.close();
      throw error;
    }
  }

  /** Finishes an erasing or a move that was interrupted; gives an erasing that has to wait. */
  static async #finishInterrupted(options: AppOptions): Promise<PausedErasing | undefined> {
    const { data } = options.settings;
    const { lockFinishing } = await import('./finishing.ts');
    const unlock = await lockFinishing(data, options.finishingMs);
    try {
      if (isErasing(data)) {
        const { finishErase, findPaused } = await import('./erase/erase.ts');
        try {
          await finishErase(options);
        } catch (error) {
          return findPaused(options, error);
        }
      }
      if (isMoving(data)) await (await import('./move/move.ts')).finishMove(options);
      return undefined;
    } finally {
      unlock();
    }
  }

  /** Changes nothing: commands that would are refused. */
  static async #openReader(options: AppOptions, { refusal }: StandbyOptions): Promise<App> {
    const { settings, log } = options;
    const onFatal = (error: unknown) =>
      log.error({ reason: messageOf(error) }, 'the lake cannot be read any more: start ringneck up again');
    const warehouse = await Warehouse.open({ path: warehouseIn(settings.data), ...lakeOf(settings), resources, refusal, onFatal });
    try {
      const app = await App.#openOver({ warehouse, release: undefined, erasing: undefined }, options);
      app.withExclusive = () => Promise.reject(refusal());
      return app;
    } catch (error) {
      await warehouse.close();
      throw error;
    }
  }

  static async #openOver(parts: Omit<OpenedParts, 'serviceClock'>, options: AppOptions): Promise<App> {
    const { warehouse, erasing } = parts;
    const { settings, log, now = Date.now } = options;
    // Begun by another process while this one waited for the file.
    if (!erasing && !options.standby && (isErasing(settings.data) || isMoving(settings.data)))
      throw new TryLaterError(tellClosed(isMoving(settings.data) ? 'moved in' : 'erased from', settings.data));
    const newest = findNewestAhead(warehouse.clock);
    if (newest !== undefined) {
      log.warn(
        { newest: isoOf(newest) },
        'the newest moment in the warehouse is ahead of this machine’s clock: is the clock right, or was it wrong before?',
      );
    }
    const onError = (error: unknown) => log.warn({ reason: messageOf(error) }, 'the service’s time could not be noted');
    const serviceClock = await openServiceClock(warehouse, settings.serviceUrl ?? '', now, onError);
    return new App(options, { ...parts, serviceClock });
  }

  /** What is read of each account. */
  get collections(): Collection[] {
    return collectionsOf(resources, this.settings.personalInfo === '1');
  }

  client(): Promise<Client> {
    this.#client ??= this.signIns().then(signIns => this.#openClient(signIns));
    return this.#client;
  }

  /** The client when something has opened it. */
  get openedClient(): Promise<Client | undefined> | undefined {
    return this.#client?.catch(() => undefined);
  }

  /** A client that asks with the very token that it is given, where another one would ask with what that has become. */
  rawClient(): Promise<Client> {
    this.#rawClient ??= this.#openClient(undefined);
    return this.#rawClient;
  }

  async #openClient(renewal: SignIns | undefined): Promise<Client> {
    const { settings, warehouse, log, now, serviceClock } = this;
    const { Client } = await import('../client/client.ts');
    const onError = (error: unknown) => log.warn({ reason: messageOf(error) }, 'a route’s answer could not be noted');
    return new Client({
      ...this.#options.client,
      baseUrl: this.#serviceUrl,
      clock: warehouse.clock,
      wallNow: now,
      serviceClock,
      renewal,
      requestsPerToken: settings.requestsPerToken,
      reservedForLive: settings.webhooks ? 1 : 0,
      heartRatePath: settings.heartRatePath,
      routes: await openRouteMemory(warehouse, this.#serviceUrl, now, onError),
      digestKey: () => this.secrets.digest('answers that are known again'),
      onWait: () => {
        void this.#pipeline?.then(
          ({ runs }) => {
            for (const run of runs.active()) run.progress.waits++;
          },
          () => undefined,
        );
      },
    });
  }

  /** What keeps sign-ins alive, from the first call on. */
  signIns(): Promise<SignIns> {
    if (this.standby) return Promise.reject(this.standby.refusal());
    this.#signIns ??= openSignIns(this).then(opened => {
      this.#openedSignIns = opened;
      return opened;
    });
    return this.#signIns;
  }

  /** @throws RingneckError where a renewed sign-in is on no disk yet: to close the folder would lose it */
  async ensureSignInsWritten(): Promise<void> {
    await this.#openedSignIns?.ensureWritten();
  }

  /** Why this process could not renew the sign-in of an account when it tried last. */
  findSignInTrouble(name: string): string | undefined {
    return this.#openedSignIns?.findTrouble(name);
  }

  /** Has the service be asked once more for the sign-in of an account that is resumed. */
  askSignInAgain(name: string): void {
    this.#openedSignIns?.askAgain(name);
  }

  /** While another machine works on the lake. */
  get standby(): StandbyOptions | undefined {
    return this.#options.standby;
  }

  /** Whether it ends with its command: what it has in hand beside that is thrown away then. */
  get isAlone(): boolean {
    return this.#options.isAlone ?? false;
  }

  get #serviceUrl(): string {
    if (this.settings.serviceUrl) return this.settings.serviceUrl;
    throw new UsageError(NO_SERVICE);
  }

  /**
   * What keeps our subscriptions; it begins when told to.
   * @throws UsageError when webhooks are not configured
   */
  manager(): Promise<SubscriptionManager> {
    if (this.standby) return Promise.reject(this.standby.refusal());
    this.#manager ??= this.#openManager();
    return this.#manager;
  }

  async #openManager(): Promise<SubscriptionManager> {
    const { settings, warehouse, log, now } = this;
    const { webhooks } = settings;
    if (!webhooks) throw new UsageError(NO_WEBHOOKS);
    const [{ SubscriptionClient }, { SubscriptionManager }] = await Promise.all([
      import('../client/subscriptions.ts'),
      import('../sync/subscriptions/subscription-manager.ts'),
    ]);
    return SubscriptionManager.open({
      client: new SubscriptionClient({ baseUrl: this.#serviceUrl, ...webhooks, now }),
      warehouse,
      callbackUrl: webhooks.callbackUrl,
      dataTypes: dataTypesOf(warehouse.resources),
      now,
      log,
    });
  }

  /** The accepted events that have no outcome yet. */
  inbox(): Promise<Inbox | CommonInbox> {
    // Another machine changes it.
    if (this.standby) return openEvents(this, this.warehouse, this.standby);
    this.#inbox ??= openEvents(this, this.warehouse);
    return this.#inbox;
  }

  /** Opens queue and workers, and takes up the runs that the ledger says are unfinished. Where that fails, the next call tries again. */
  pipeline(): Promise<Pipeline> {
    if (this.standby) return Promise.reject(this.standby.refusal());
    if (this.#closing && !this.#pipeline) return Promise.reject(this.ending.reason);
    this.#pipeline ??= this.#openPipeline().then(
      pipeline => {
        this.queueProblem = undefined;
        return pipeline;
      },
      error => {
        this.#pipeline = undefined;
        this.queueProblem = messageOf(error);
        throw error;
      },
    );
    return this.#pipeline;
  }

  async #openPipeline(): Promise<Pipeline> {
    const { settings, warehouse, secrets, log, now, serviceClock } = this;
    if (this.erasing) throw new TryLaterError(this.erasing.reason);
    const [client, inbox, signIns] = await Promise.all([this.client(), this.inbox(), this.signIns()]);
    const { startCollecting } = await import('../../jobs/collect-window.ts');
    const queues = await this.#openQueues();
    this.#opening = queues;
    const pipeline: Pipeline = {
      warehouse,
      client,
      queues,
      inbox,
      tokens: secrets,
      signIns,
      collections: this.collections,
      runs: new Runs(this.#options.lookMs === undefined ? {} : { lookMs: this.#options.lookMs }),
      settledDays: settings.settledDays,
      requestsPerToken: settings.requestsPerToken,
      retryDelayMs: this.#options.retryDelayMs ?? RETRY_DELAY_MS,
      secondLookMs: this.#options.secondLookMs ?? SECOND_LOOK_MS,
      unreachedMs: this.#options.unreachedMs ?? UNREACHED_MS,
      now,
      serviceClock,
      log,
      onFailure: this.onFailure,
    };
    try {
      await pipeline.runs.open(pipeline);
      await startCollecting(pipeline);
      return pipeline;
    } catch (error) {
      pipeline.runs.close();
      await queues.close({ graceMs: 0 });
      throw error instanceof RingneckError
        ? error
        : new RingneckError(`the queue cannot be used: ${messageOf(error)}`, 1, { cause: error });
    } finally {
      this.#opening = undefined;
    }
  }

  async #openQueues(): Promise<Queues> {
    const { settings, warehouse, log } = this;
    const { queueUrl: url, queuePrefix: prefix, data } = settings;
    if (this.#options.openQueues) return this.#options.openQueues();
    if (this.#options.isAlone && url === undefined) return new (await import('../queue/memory.ts')).MemoryQueues();
    const [{ openQueues }, held] = await Promise.all([import('../queue/open.ts'), findHeld(data)]);
    return openQueues({
      ...(url ? { url } : {}),
      folder: join(data, 'queue'),
      prefix,
      log,
      claim: {
        warehouse: await warehouseId(warehouse),
        folder: data,
        place: settings.warehouse && QUEUES_OF_LAKE,
        mayWork: held && (() => held.lease.isHeld),
        onLost: message => {
          // Nothing more may be taken from the queues or noted in them; what is committed is safe.
          log.fatal(message);
          void this.#exit(75);
        },
      },
    });
  }

  /** The pipeline when something has opened it; undefined also where that could not be done. */
  get opened(): Promise<Pipeline | undefined> | undefined {
    return this.#pipeline?.catch(() => undefined);
  }

  /** The runs that this process works on. */
  async workedOn(): Promise<ReadonlySet<string>> {
    const pipeline = await this.opened;
    return new Set(pipeline?.runs.active().map(({ id }) => id));
  }

  /** Closes a pipeline in which work could not begin; the next call of `pipeline` opens another. */
  async dropPipeline(problem: string): Promise<void> {
    const pipeline = await this.opened;
    this.#pipeline = undefined;
    this.queueProblem = problem;
    pipeline?.runs.close();
    await pipeline?.queues.close({ graceMs: 0 });
  }

  /** Aborted when it begins to close. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /** From here on nothing begins that the service answers once; what has begun is waited for by who ends the process. */
  beginNothing(): void {
    this.#ending.abort(new TryLaterError(ENDING));
    this.inHand.isEnding = true;
  }

  /** Ends the process with nothing closed: at once, or when it has the answers that come once. */
  async #exit(code: number): Promise<void> {
    this.beginNothing();
    if (!this.inHand.isEmpty || !this.ofErased.isEmpty) {
      void this.opened
        ?.then(pipeline => {
          pipeline?.runs.close();
          return pipeline?.queues.close({ graceMs: 0 });
        })
        .catch(() => undefined);
      await Promise.all([this.inHand.settle(this.log), this.ofErased.settle(this.log)]);
    }
    process.exit(code);
  }

  /**
   * Leaves runs to the next start, commits what waits, and gives the folder back.
   * @param pause why, where it is opened again in a moment
   */
  close(pause?: string): Promise<void> {
    this.#closing ??= this.#close(pause);
    return this.#closing;
  }

  async #close(pause: string | undefined): Promise<void> {
    this.#ending.abort(new TryLaterError(pause ?? ENDING));
    this.snapshots.close();
    const closing = [
      // One that is being opened may wait for a Redis that went away meanwhile.
      () => this.#opening?.close({ graceMs: 0 }),
      async () => (await this.opened)?.runs.close(pause),
      async () => (await this.#manager?.catch(() => undefined))?.close(),
      async () => (await this.opened)?.queues.close(),
      async () => (await this.#inbox?.catch(() => undefined))?.close(),
      () => this.inHand.settle(this.log),
      async () => (await this.openedClient)?.close(),
      async () => (await this.#rawClient?.catch(() => undefined))?.close(),
      async () => (await this.#signIns?.catch(() => undefined))?.close(),
      () => !this.#options.onFailure && this.onFailure.close(),
    ];
    try {
      await closeAll(closing.toReversed());
    } finally {
      if (!this.standby) {
        await this.#leaveSilence();
        await this.serviceClock.save();
      }
      await this.warehouse.close();
      await this.#release?.();
    }
  }

  async #leaveSilence(): Promise<void> {
    const { warehouse, log, now, settings } = this;
    const client = await this.openedClient;
    await leaveSilence({ warehouse, client, service: settings.serviceUrl, now }).catch(error =>
      log.warn({ reason: messageOf(error) }, 'that the service cannot be reached could not be noted'),
    );
  }
}
