import { join } from 'node:path';
import { type Deliveries, openDeliveries } from '../../jobs/deliver-event.ts';
import { resources } from '../../schema/index.ts';
import { heartRate } from '../../schema/resources/heart-rate.ts';
import type { Settings } from '../base/config.ts';
import { UsageError } from '../base/errors.ts';
import { ensureFolder } from '../base/files.ts';
import { closeAll } from '../base/interrupt.ts';
import type { Log } from '../base/log.ts';
import { ensureSecretKey } from '../base/secrets/secret-key.ts';
import { openQueues } from '../queue/open.ts';
import { listRoutes } from '../service/routes.ts';
import { createService } from '../service/service.ts';
import type { ServiceSettings } from '../service/settings.ts';
import { Grants } from '../service/sign-in/grants.ts';
import type { SignIn } from '../service/sign-in/sign-in.ts';
import { findServiceOptions, openServiceState, type ServiceState } from '../service/state.ts';
import type { TokenState } from '../service/tokens.ts';
import type { AddressRange } from '../service/webhooks/callback-guard.ts';
import { openWebhooks, type Webhooks } from '../service/webhooks/webhooks.ts';
import { addAnswerFaults } from '../simulator/answer-faults.ts';
import { createControl } from '../simulator/control-route.ts';
import { openControlSecret } from '../simulator/control-secret.ts';
import { withEventFaults } from '../simulator/event-faults.ts';
import { createFaultSwitches, type FaultSwitches } from '../simulator/faults.ts';
import { Timeline } from '../simulator/timeline.ts';
import type { Edit } from '../simulator/users/edits.ts';
import { createPeople } from '../simulator/users/people.ts';
import { refuseImpossible } from '../sync/runs/backfill.ts';
import { checkFree } from './free-port.ts';
import { listening } from './listen.ts';

/** Which people it has, and of which days; what is not given is as at its first start. */
export interface SandboxRange {
  people?: number;
  seed?: number;
  from?: string;
  to?: string;
}

export interface SandboxOptions extends SandboxRange {
  port: number;
  host: string;
  newTokens?: true;
  pageSize?: number;
  heartRatePageSize?: number;
  rateLimit?: ServiceSettings['rateLimit'];
  appRateLimit?: ServiceSettings['appRateLimit'];
  /** Where people who sign in may be sent back to. */
  redirectUrl: readonly string[];
  /** Of an access token of a sign-in, in seconds. */
  tokenLife: number;
  peopleLimit?: number;
  inclusiveEnd?: true;
  specificationOnly?: true;
  deliveryDelay: number;
  timeScale: number;
  allowCallback: AddressRange[];
  clockSpeed?: number;
  controlPort: number;
  fault?: FaultSwitches;
}

/** Where it is and what opens it. A secret that was told before is null. */
export interface SandboxAccess {
  url: string;
  people: readonly { name: string; user_id: string; token: string | null }[];
  client: { id: string; secret: string | null };
  /** Null where people cannot sign in. */
  sign_in: { authorize_url: string; token_url: string; revoke_url: string; redirect_urls: readonly string[] } | null;
  control: { url: string; secret: string | null };
}

interface Parts {
  settings: Settings;
  log: Log;
  options: SandboxOptions;
  /** What a first start takes for what it is not told. */
  first: Required<Omit<SandboxRange, 'to'>>;
}

type Range = Parts['first'] & Pick<SandboxRange, 'to'>;

/** The service over generated people, in the data folder's `service`. */
export class Sandbox {
  /** Whether it has made tokens or secrets that nobody was shown. */
  isUnshown = false;
  readonly #parts: Parts;
  readonly #folder: string;
  readonly #faults: FaultSwitches;
  readonly #range: Range;
  #state!: ServiceState;
  readonly #closing: (() => unknown)[] = [];

  private constructor(parts: Parts) {
    this.#parts = parts;
    this.#folder = join(parts.settings.data, 'service');
    this.#faults = parts.options.fault ?? createFaultSwitches();
    ensureFolder(this.#folder);
    this.#range = this.#findRange();
  }

  /** Opens its state, which makes the tokens of a first start. @throws UsageError where it is the state of others, or the days are none */
  static async prepare(parts: Parts): Promise<Sandbox> {
    const sandbox = new Sandbox(parts);
    const { host, port, controlPort } = parts.options;
    if (!findServiceOptions(sandbox.#folder)) {
      // Before tokens are made that are shown only once.
      await checkFree({ host, port }, '--port');
      await checkFree({ host: '127.0.0.1', port: controlPort }, '--control-port');
    }
    sandbox.#state = sandbox.#openState();
    return sandbox;
  }

  async open(): Promise<SandboxAccess> {
    const webhooks = this.#openWebhooks();
    const timeline = await this.#openTimeline(webhooks);
    const signIn = this.#openSignIn(webhooks);
    const url = await this.#serve(webhooks, timeline, signIn);
    const control = await this.#openControl(webhooks, timeline, signIn);
    const client = { id: webhooks.client.id, secret: webhooks.client.isNew ? webhooks.client.secret : null };
    return { url, people: this.#state.people, client, sign_in: this.#describeSignIn(url, signIn), control };
  }

  close(): Promise<void> {
    return closeAll(this.#closing);
  }

  #findRange(): Range {
    const { first, options } = this.#parts;
    const given = Object.entries({ people: options.people, seed: options.seed, from: options.from, to: options.to });
    const range: Range = {
      ...first,
      ...findServiceOptions(this.#folder),
      ...Object.fromEntries(given.filter(([, value]) => value !== undefined)),
    };
    const { from, to = from } = range;
    refuseImpossible({ from, to });
    if (from > to) throw new UsageError(`--from ${from} is after --to ${to}`);
    return range;
  }

  #openState(): ServiceState {
    const { people, ...range } = this.#range;
    const { newTokens = false } = this.#parts.options;
    const { seed, from } = range;
    const { persons } = createPeople({ seed, count: people, from, to: from });
    const state = openServiceState(this.#folder, { ...range, people: persons, newTokens });
    this.#closing.push(() => state.close());
    this.isUnshown = state.people.some(({ token }) => token !== null);
    return state;
  }

  #openWebhooks(): Webhooks {
    const { settings, log, options } = this.#parts;
    const { allowCallback: allowedRanges, newTokens = false, timeScale } = options;
    const webhooks = openWebhooks({
      folder: this.#folder,
      secretKey: ensureSecretKey(settings.data, settings.secretKey),
      newSecret: newTokens,
      headerPrefix: settings.headerPrefix,
      allowedRanges,
      timeScale,
      now: Date.now,
    });
    this.#closing.push(() => webhooks.close());
    this.isUnshown ||= webhooks.client.isNew;
    if (allowedRanges.length > 0)
      log.info({ ranges: allowedRanges.map(range => range.join('/')).join(', ') }, 'callbacks may lie in these blocks of addresses');
    return webhooks;
  }

  #openSignIn({ client }: Webhooks): SignIn {
    const { newTokens = false, timeScale, tokenLife, redirectUrl, peopleLimit = Number.POSITIVE_INFINITY } = this.#parts.options;
    const { isLapsed, people } = this.#state;
    const grants = new Grants({
      folder: this.#folder,
      tokenLifeSeconds: Math.max(1, Math.round(tokenLife / timeScale)),
      peopleLimit,
      forget: newTokens,
      now: Date.now,
      isLapsed,
    });
    return { client, people, redirectUrls: redirectUrl, grants };
  }

  #describeSignIn(url: string, { redirectUrls }: SignIn): SandboxAccess['sign_in'] {
    if (this.#parts.options.specificationOnly) return null;
    const routes = { authorize_url: `${url}/oauth/authorize`, token_url: `${url}/oauth/token`, revoke_url: `${url}/oauth/revoke` };
    return { ...routes, redirect_urls: redirectUrls };
  }

  /** The timeline of the people, as the faults let it be seen; without a speed it goes by the calendar, or stands still after a last day. */
  async #openTimeline(webhooks: Webhooks): Promise<Timeline> {
    const { people, seed, from, to } = this.#range;
    const { log, options } = this.#parts;
    const faults = this.#faults;
    const { announce } = await this.#openDeliveries(webhooks);
    const timeline = new Timeline({
      folder: this.#folder,
      seed,
      count: people,
      from,
      ...(to === undefined ? {} : { to }),
      // Whatever wrote the state's log of edits wrote edits.
      edits: this.#state.edits as readonly Edit[],
      speed: options.clockSpeed ?? (to === undefined ? 1 : 0),
      resources,
      announce: withEventFaults(announce, faults, seed),
      lagMs() {
        const unreadable = faults.get('unreadable');
        return unreadable === undefined ? 0 : (options.deliveryDelay + (faults.get('delay') ?? 0) + unreadable) * 1000;
      },
      log,
    });
    this.#closing.push(() => timeline.close());
    return timeline;
  }

  async #openDeliveries(webhooks: Webhooks): Promise<Deliveries> {
    const { settings, log, options } = this.#parts;
    const { timeScale, deliveryDelay } = options;
    const queues = await openQueues({ url: settings.queueUrl, folder: join(this.#folder, 'queue'), prefix: 'service', log });
    this.#closing.push(() => queues.close());
    const folder = join(this.#folder, 'deliveries');
    const deliveries = openDeliveries({ queues, webhooks, timeScale, log, folder, delayMs: deliveryDelay * 1000 });
    this.#closing.push(() => deliveries.close());
    return deliveries;
  }

  async #serve(webhooks: Webhooks, timeline: Timeline, signIn: SignIn): Promise<string> {
    const { host, port } = this.#parts.options;
    const served = settingsOf(this.#parts.options);
    const service = createService({
      resources,
      source: timeline.source,
      authenticate: token => this.#state.authenticate(token) ?? signIn.grants.findHolder(token),
      tokenKey: this.#state.tokenKey,
      clock: () => new Date(timeline.clock.now()),
      realClock: () => new Date(),
      settings: served,
      log: this.#parts.log,
      webhooks,
      signIn,
      answersAsSpecified: () => this.#faults.get('specification-only') ?? false,
    });
    addAnswerFaults(service, listRoutes({ resources, heartRate, ...served }), this.#faults, this.#range.seed);
    const address = { host, port };
    const url = await listening(address, '--port', service.listen(address));
    this.#closing.push(() => service.close());
    return url;
  }

  /** On this machine only. */
  async #openControl(webhooks: Webhooks, timeline: Timeline, { grants }: SignIn): Promise<SandboxAccess['control']> {
    const { newTokens = false, controlPort: port } = this.#parts.options;
    const { secret, isIt: isSecret } = openControlSecret(this.#folder, newTokens);
    const subscriptions = () => webhooks.subscriptions.list(webhooks.client.id).length;
    const setTokenState = (userId: string, state: TokenState) => {
      grants.setTokenState(userId, state);
      return this.#state.setTokenState(userId, state);
    };
    const control = createControl({ timeline, faults: this.#faults, isSecret, setTokenState, subscriptions });
    const address = { host: '127.0.0.1', port };
    const url = await listening(address, '--control-port', control.listen(address));
    this.#closing.push(() => control.close());
    return { url: `${url}/control`, secret };
  }
}

function settingsOf(options: SandboxOptions): Partial<ServiceSettings> {
  return {
    ...(options.pageSize === undefined ? {} : { pageSize: options.pageSize }),
    ...(options.heartRatePageSize === undefined ? {} : { heartRatePageSize: options.heartRatePageSize }),
    ...(options.rateLimit === undefined ? {} : { rateLimit: options.rateLimit }),
    ...(options.appRateLimit === undefined ? {} : { appRateLimit: options.appRateLimit }),
    inclusiveEnd: options.inclusiveEnd ?? false,
    specificationOnly: options.specificationOnly ?? false,
  };
}
