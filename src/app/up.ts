import { existsSync } from 'node:fs';
import { NO_WEBHOOKS } from '../base/config.ts';
import { messageOf, TryLaterError } from '../base/errors.ts';
import { createFailure } from '../base/failure.ts';
import { ensureFolder } from '../base/files.ts';
import { identityOfFolder } from '../base/folder-identity.ts';
import { closeAll } from '../base/interrupt.ts';
import type { Log } from '../base/log.ts';
import { TimeoutError, withTimeout } from '../base/timeout.ts';
import { warehouseIn } from '../base/warehouse-file.ts';
import type { Catalogue } from '../machines/catalogue.ts';
import type { Holder } from '../machines/lease.ts';
import { openReceiver, type Receiver } from '../receiver/receiver.ts';
import type { WebhookOptions } from '../receiver/webhook.ts';
import type { EventLine } from '../sync/events/advance-event.ts';
import type { App } from './app.ts';
import type { AppOptions, ConsoleLinks } from './app-options.ts';
import type { AppCommands } from './commands.ts';
import { keepFileCompact } from './compaction/schedule.ts';
import { serveControl } from './control/serve-control.ts';
import { DataFolder } from './data-folder.ts';
import { openConnect } from './enrolment/connect.ts';
import { finishDaily, finishWithdrawals } from './enrolment/withdrawal.ts';
import { ensureThere, howToBegin } from './ensure-there.ts';
import { ensureUnowned } from './ensure-unowned.ts';
import { type ErasingWait, whenErased } from './erase/when-erased.ts';
import { Following, proofOf } from './follow-events.ts';
import { findHeld, holdLake, openCatalogue, tellHolder } from './lake/hold.ts';
import type { Standby } from './lake/standby.ts';
import { listening } from './listen.ts';
import { keepUpToDate } from './snapshot/schedule.ts';
import { whenQueueOpens } from './when-queue-opens.ts';

export interface UpOptions extends AppOptions {
  /** Where the warehouse is served by the service's own interface; 0: at any free port. */
  mirror?: number | undefined;
  /** Shows each event. */
  onEvent?: ((line: EventLine) => void) | undefined;
  /** Serves the console. */
  openConsole?: ((parts: { commands: AppCommands }, address: { host: string; port: number }) => Promise<ServedConsole>) | undefined;
  /** How long it may take to end. */
  endMs?: number;
}

export interface ServedConsole extends ConsoleLinks {
  url: string;
  close(): Promise<void>;
}

/** Less than what a service manager gives it before it kills: examples/systemd, docker-compose.yml. */
const END_MS = 50_000;
/** Of who can be replaced: all that closes properly may wait for a Redis that says nothing. */
const CUT_OFF_END_MS = 5_000;
const READY_EVERY_MS = 5_000;
/** Before an erasing that waits is tried again. */
const FIRST_PAUSE_MS = 250;
/** Where the service gives no answer all else begins meanwhile. */
const FIRST_LOOK_MS = 5_000;

/**
 * Owns the data folder until the signal: receives events, follows the schedules, and does what other commands ask. Of a lake on which another
 * machine works it waits until that one ends.
 */
export async function runUp(options: UpOptions, signal: AbortSignal): Promise<void> {
  const up = new Up(options);
  try {
    if (await up.untilHeld(signal)) await up.start();
    await up.untilStopped(signal);
  } finally {
    await up.end();
  }
}

class Up {
  readonly #options: UpOptions;
  readonly #closing: (() => unknown)[] = [];
  readonly #failure = createFailure();
  /** Of a lake. */
  #catalogue: Catalogue | undefined;
  #receiver: Receiver | undefined;
  /** Whether there are pages for invited people. */
  #connects = false;
  /** Undefined while another machine works on the lake. */
  #owned: DataFolder | undefined;
  #following: Following | undefined;

  #endMs: number;

  constructor(options: UpOptions) {
    this.#options = options;
    this.#endMs = options.endMs ?? END_MS;
  }

  /** Waits as a standby while another machine works on the lake; whether it is ours, or the signal came before. */
  async untilHeld(signal: AbortSignal): Promise<boolean> {
    const { settings, log } = this.#options;
    if (!settings.warehouse) return true;
    await ensureUnowned({ data: settings.data, log });
    const catalogue = await openCatalogue(this.#options);
    this.#closing.push(() => catalogue.close());
    this.#catalogue = catalogue;
    const { notePresence } = await import('../machines/presence.ts');
    ensureFolder(settings.data);
    const askQueue = await askRedis(settings.queueUrl);
    const onCutOff = (host: string) => this.#leaveTo(host);
    this.#closing.push(notePresence({ catalogue, folder: settings.data, place: identityOfFolder(settings.data), askQueue, onCutOff }));
    let standby: Standby | undefined;
    const ending: (() => unknown)[] = [];
    const onHeld = async (holder: Holder) => {
      if (standby) return standby.noteHolder(holder);
      const { Standby } = await import('./lake/standby.ts');
      const waiting = new Standby(this.#options, catalogue, holder);
      standby = waiting;
      ending.push(() => waiting.close());
      const control = await serveControl({ folder: settings.data, commands: waiting.commands, log });
      ending.push(() => control.close());
      const { url } = await this.#receive();
      const served = await this.#openConsole(waiting.commands);
      if (served) ending.push(() => served.close());
      waiting.console = served;
      log.info({ url, console: served?.url }, `standby: ${tellHolder(holder)}; this machine waits to take over`);
    };
    const onTaken = () => closeAll(ending.splice(0));
    const release = await holdLake(this.#options, { signal, onHeld, onTaken }).finally(onTaken);
    if (!release) return false;
    this.#closing.push(release);
    if (this.#receiver) log.info('the lake is free: this machine takes over');
    return true;
  }

  /** A machine that waits goes on to wait: it takes events, and who works may end. */
  #leaveTo(host: string): void {
    if (!this.#owned) return;
    this.#endMs = CUT_OFF_END_MS;
    this.#failure.fail(new TryLaterError(`Redis does not answer this machine, and answers ${host}, which takes over`));
  }

  async start(): Promise<void> {
    const { settings, log, onEvent, mirror } = this.#options;
    if (onEvent && !settings.webhooks) log.warn(`--events has nothing to show: ${NO_WEBHOOKS}`);
    await this.#openFolder();
    await this.#acceptEvents();
    const receiver = this.#receiver ?? (await this.#receive());
    await this.#folder.during(async app => {
      app.refusals = receiver.refusals;
      return () => undefined;
    });
    if (mirror !== undefined) await this.#serveMirror(mirror);
    const served = await this.#serveConsole();
    await this.#work();
    const queue = settings.queueUrl ? 'redis' : 'embedded';
    const serves = { webhooks: Boolean(settings.webhooks), connect: this.#connects, console: served?.url };
    log.info({ url: receiver.url, data: settings.data, queue, nightly: settings.nightly, ...serves }, 'up');
  }

  async untilStopped(signal: AbortSignal): Promise<void> {
    const stopped = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()));
    if (!signal.aborted) await Promise.race([stopped, this.#owned?.broken, this.#failure.failed].filter(one => one));
    this.#options.log.info('stopping');
  }

  async end(): Promise<void> {
    const { log, settings } = this.#options;
    const endMs = this.#endMs;
    const closing = closeAll(this.#closing);
    const isInTime = (ms: number) =>
      withTimeout(closing, ms).then(
        () => true,
        error => {
          if (!(error instanceof TimeoutError)) throw error;
          return false;
        },
      );
    if (await isInTime(endMs)) return;
    // An answer that nobody takes loses a sign-in. Each is waited for as long as its request, and none begins any more.
    this.#owned?.beginNothing();
    const signIns = this.#owned?.findSignInsInHand();
    if (signIns) await Promise.race([closing, signIns]);
    if (signIns && (await isInTime(END_MS))) return;
    // Whoever waits need not do so until it lapses: what this process still does is refused from here on.
    await (await findHeld(settings.data))?.lease.giveBack();
    log.error({ seconds: endMs / 1000 }, 'up is cut off, for it has not ended in time: the next start goes on with what was under way');
  }

  async #openFolder(): Promise<void> {
    const { settings, log } = this.#options;
    await ensureUnowned({ data: settings.data, log });
    ensureThere(settings);
    const isNew = !existsSync(warehouseIn(settings.data));
    const folder = await DataFolder.open({ ...this.#options, acceptsWhileErasing: true });
    if (isNew) {
      const fix = howToBegin(settings);
      log.warn({ data: settings.data, fix }, 'there was no warehouse in the data folder: an empty one is made, and nobody is read yet');
    }
    this.#owned = folder;
    this.#closing.push(() => folder.close());
    const control = await serveControl({ folder: settings.data, commands: folder.commands, log });
    this.#closing.push(() => control.close());
    this.#closing.push(() => folder.end());
  }

  #acceptEvents(): Promise<void> {
    return this.#folder.during(async app => {
      this.#following = await Following.open(app);
      return () => {
        this.#following = undefined;
      };
    });
  }

  /** Goes on through a take-over: of a lake every machine receives events at any time. */
  async #receive(): Promise<Receiver> {
    const { settings, log, now = Date.now } = this.#options;
    const { host, port } = settings;
    const [webhook, connect] = [this.#webhook(), openConnect({ settings, log, now }, () => this.#folder.app)];
    this.#connects = connect !== undefined;
    const isWritable = readiness(() => this.#folder.app, log);
    const ready = async () => {
      if (this.#owned) await isWritable();
      else await this.#catalogue?.ensureReachable();
    };
    const address = { host, port };
    const parts = { ready, isStandby: () => !this.#owned, ...(webhook ? { webhook } : {}), ...(connect ? { connect } : {}) };
    const receiver = await listening(address, 'RINGNECK_PORT', openReceiver(parts, address));
    this.#closing.push(() => receiver.close());
    this.#receiver = receiver;
    return receiver;
  }

  #webhook(): WebhookOptions | undefined {
    const catalogue = this.#catalogue;
    if (!catalogue) return webhookOf(() => this.#following);
    const proof = proofOf(this.#options);
    if (!proof) return undefined;
    const acceptance = import('../machines/inbox.ts').then(({ EventAcceptance }) => new EventAcceptance(catalogue));
    return {
      ...proof,
      accept: async (event, signature) => {
        await (await acceptance).accept(signature, JSON.stringify(event));
        this.#following?.look();
      },
      isGone: event => this.#following?.webhook?.isGone?.(event) ?? false,
      noteGone: event => this.#following?.webhook?.noteGone?.(event),
    };
  }

  /** @throws TryLaterError while another machine works on the lake */
  get #folder(): DataFolder {
    if (this.#owned) return this.#owned;
    throw new TryLaterError('another machine works on the lake');
  }

  async #serveConsole(): Promise<ServedConsole | undefined> {
    const served = await this.#openConsole(this.#folder.commands);
    if (!served) return undefined;
    this.#closing.push(() => served.close());
    await this.#folder.during(async app => {
      app.console = served;
      return () => undefined;
    });
    return served;
  }

  /** Nobody is kept from their data by a port that is in use: it is said, and all else goes on. */
  async #openConsole(commands: AppCommands): Promise<ServedConsole | undefined> {
    const { settings, log, openConsole } = this.#options;
    const { consoleHost: host, consolePort: port } = settings;
    if (port === null || !openConsole) return undefined;
    try {
      return await listening({ host, port }, 'RINGNECK_CONSOLE_PORT', openConsole({ commands }, { host, port }));
    } catch (error) {
      log.warn({ reason: messageOf(error) }, 'the console is not served');
      return undefined;
    }
  }

  async #serveMirror(port: number): Promise<void> {
    const { settings, log } = this.#options;
    const { serveMirror } = await import('./mirror.ts');
    const address = { host: settings.host, port };
    await this.#folder.during(async app => {
      if (app.erasing) return () => undefined;
      const mirror = await listening(address, '--mirror', serveMirror(app, address));
      // The same place again, also when any free one was asked for.
      address.port = Number(new URL(mirror.url).port);
      log.info({ url: mirror.url }, 'the mirror is served');
      return () => mirror.close();
    });
  }

  /** Works off what was accepted and follows the schedules, as soon as the queue is open and no erasing waits. */
  #work(): Promise<void> {
    const newWait = (): ErasingWait => ({ ms: FIRST_PAUSE_MS, said: false });
    let wait = newWait();
    return this.#folder.during(async app => {
      this.#following!.subscribe();
      if (app.erasing) return whenErased(app, wait);
      wait = newWait();
      await finishWithdrawals(app);
      // They live on while the queue is away.
      const signIns = await app.signIns();
      // Opening the queue keeps the thread: an answer that waits for it is lost with a process that is killed.
      await withTimeout(signIns.firstLook(), FIRST_LOOK_MS).catch(() => undefined);
      const stop = await whenQueueOpens(app, () => this.#begin(app), this.#failure.fail);
      const stopFinishing = finishDaily(app);
      return () => closeAll([stop, stopFinishing]);
    });
  }

  async #begin(app: App): Promise<() => Promise<void>> {
    const { onEvent } = this.#options;
    const schedules = await this.#following!.start(onEvent ? { onEvent } : {});
    const kept = await keepUpToDate(app);
    const compact = await keepFileCompact(app);
    return () => closeAll([() => schedules.close(), () => kept.close(), () => compact.close()]);
  }
}

const REDIS_MS = 3_000;

async function askRedis(url: string | undefined): Promise<(() => Promise<unknown>) | undefined> {
  if (url === undefined) return undefined;
  const { checkRedis } = await import('../queue/check-redis.ts');
  return () => checkRedis(url, REDIS_MS);
}

/** What the receiver does with events; while the folder is closed for a while none is accepted, and each is sent again. */
export function webhookOf(find: () => Pick<Following, 'webhook'> | undefined): WebhookOptions | undefined {
  const first = find()?.webhook;
  return (
    first && {
      ...first,
      accept: async (event, signature) => {
        const webhook = find()?.webhook;
        if (!webhook) throw new TryLaterError('an account is being erased or moved');
        return webhook.accept(event, signature);
      },
      isGone: event => find()?.webhook?.isGone?.(event) ?? false,
      noteGone: event => find()?.webhook?.noteGone?.(event),
    }
  );
}

/** Ready means that a write to the warehouse succeeds, and one to the inbox where there are webhooks; asked more often, the last answer counts for a while. */
export function readiness(find: () => App, log: Log): () => Promise<void> {
  let last: { at: number; answer: Promise<void> } | undefined;
  return async () => {
    const now = Date.now();
    const app = find();
    if (!last || now - last.at >= READY_EVERY_MS) {
      const row = { value: new Date(now).toISOString() };
      const writing = async () => {
        await app.warehouse.record([{ table: 'sync.meta', key: { key: 'ready_at' }, row }]);
        // It may lie on another disk, and is full or read-only by itself.
        if (app.settings.webhooks) await (await app.inbox()).ensureWritable();
      };
      last = { at: now, answer: writing() };
      // Whoever asks may be anybody, and is not told of our files.
      last.answer.catch(error => log.warn({ reason: messageOf(error) }, 'nothing can be written: /ready says so'));
    }
    return last.answer;
  };
}
