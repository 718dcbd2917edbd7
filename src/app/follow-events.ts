import type { Fetching } from '../../jobs/process-event.ts';
import type { Schedules } from '../../jobs/schedules.ts';
import type { Inbox } from '../base/journal.ts';
import type { CommonInbox } from '../machines/inbox.ts';
import type { WebhookOptions } from '../receiver/webhook.ts';
import { createAccept, numberEvents, personOf } from '../sync/events/accept-event.ts';
import type { EventLine } from '../sync/events/advance-event.ts';
import { createForgotten } from '../sync/events/erased-ids.ts';
import { takeUpEvents } from '../sync/events/take-up.ts';
import type { Pipeline } from '../sync/pipeline.ts';
import type { SubscriptionManager } from '../sync/subscriptions/subscription-manager.ts';
import { NewAccounts } from '../sync/sweeps/new-accounts.ts';
import type { App } from './app.ts';
import type { AppOptions } from './app-options.ts';

/** What events are known by; undefined where webhooks are not configured. */
export function proofOf({
  settings,
  log,
  now = Date.now,
}: Pick<AppOptions, 'settings' | 'log' | 'now'>): Omit<WebhookOptions, 'accept'> | undefined {
  const { webhooks, headerPrefix, signatureWindow } = settings;
  if (!webhooks) return undefined;
  const { verificationToken, secrets } = webhooks;
  return { verificationToken, secrets, headerPrefix, windowMs: signatureWindow * 1000, now, log };
}

/** What goes on while the data folder is owned: schedules, and with webhooks the events and the subscriptions that bring them. */
export class Following {
  /** For the receiver; undefined where webhooks are not configured. Events are accepted from the beginning, and wait for `start`. */
  readonly webhook: WebhookOptions | undefined;
  /** Has events be taken up that other machines may have accepted. */
  look: () => void = () => undefined;
  readonly #app: App;
  readonly #manager: SubscriptionManager | undefined;
  #fetching: Fetching | undefined;

  private constructor(app: App, inbox: Inbox | CommonInbox, manager: SubscriptionManager | undefined) {
    this.#app = app;
    this.#manager = manager;
    const { warehouse, secrets, erasing } = app;
    const isErased = createForgotten({ warehouse, tokens: secrets });
    const isForgotten = async (id: string) => erasing?.serviceUserIds.includes(id) || isErased(id);
    const onAccepted = (key: string) => this.#fetching?.filling.add(key);
    this.webhook = manager && this.#webhookOf(manager, createAccept({ warehouse, inbox, isForgotten }, onAccepted));
    if (!('start' in inbox)) return;
    this.look = () => inbox.look();
    inbox.start({ next: numberEvents({ warehouse, inbox }), isForgotten: event => isForgotten(personOf(event)), onAccepted });
  }

  /** Needs no queue, which may take its time to open. */
  static async open(app: App): Promise<Following> {
    const inbox = await app.inbox();
    return new Following(app, inbox, app.settings.webhooks ? await app.manager() : undefined);
  }

  #webhookOf(manager: SubscriptionManager, accept: WebhookOptions['accept']): WebhookOptions {
    const proof = proofOf(this.#app)!;
    return { ...proof, accept, isGone: () => manager.isGone(), noteGone: event => manager.noteGone(event) };
  }

  /** Keeps the subscriptions. The receiver must be listening: the service verifies it meanwhile. */
  subscribe(): void {
    this.#manager?.start();
  }

  /** Works off what was accepted. Where it fails it has left nothing behind and may be called again. */
  async start({ onEvent }: { onEvent?: (line: EventLine) => void } = {}): Promise<{ close(): Promise<void> }> {
    // Loaded only now: BullMQ would keep the receiver from listening.
    const [pipeline, { startFetching }] = await Promise.all([this.#app.pipeline(), import('../../jobs/process-event.ts')]);
    const schedules = await this.#startSchedules(pipeline);
    try {
      // What an earlier process accepted is worked off also where webhooks are configured no more.
      this.#fetching = await startFetching(pipeline, {
        onHeartRate: user => schedules.requestHeartRate(user),
        onEvent: line => {
          this.#app.recentEvents.add(line);
          onEvent?.(line);
        },
      });
    } catch (error) {
      schedules.close();
      throw error;
    }
    void takeUpEvents(pipeline);
    const newAccounts = new NewAccounts(pipeline, this.#app.settings.historyDays);
    newAccounts.start();
    return {
      close: async () => {
        await newAccounts.close();
        schedules.close();
        await this.#fetching?.filling.close();
      },
    };
  }

  async #startSchedules(pipeline: Pipeline): Promise<Schedules> {
    const { settings } = this.#app;
    const { startSchedules } = await import('../../jobs/schedules.ts');
    return startSchedules(pipeline, {
      nightly: { pattern: settings.nightly, timeZone: settings.timeZone, days: settings.nightlyDays },
      sweep: { hours: settings.sweepHours, days: settings.sweepDays },
      heartRateMinutes: settings.heartRateMinutes,
      webhooks: this.webhook !== undefined,
      onMissed: ({ user, collection, count }) =>
        pipeline.onFailure({
          reason: 'events_missed',
          user,
          collection,
          message: `${count} changes were found that no event had announced`,
        }),
    });
  }
}
