import type { Fetching } from '../../jobs/process-event.ts';
import type { Schedules } from '../../jobs/schedules.ts';
import type { Journal } from '../base/journal.ts';
import type { WebhookOptions } from '../receiver/webhook.ts';
import { createAccept } from '../sync/events/accept-event.ts';
import type { EventLine } from '../sync/events/advance-event.ts';
import { createForgotten } from '../sync/events/erased-ids.ts';
import { takeUpEvents } from '../sync/events/take-up.ts';
import type { Pipeline } from '../sync/pipeline.ts';
import type { SubscriptionManager } from '../sync/subscriptions/subscription-manager.ts';
import { NewAccounts } from '../sync/sweeps/new-accounts.ts';
import type { App } from './app.ts';

/** What goes on while the data folder is owned: schedules, and with webhooks the events and the subscriptions that bring them. */
export class Following {
  /** For the receiver; undefined where webhooks are not configured. Events are accepted from the beginning, and wait for `start`. */
  readonly webhook: WebhookOptions | undefined;
  readonly #app: App;
  readonly #manager: SubscriptionManager | undefined;
  #fetching: Fetching | undefined;

  private constructor(app: App, inbox: Journal, manager: SubscriptionManager | undefined) {
    this.#app = app;
    this.#manager = manager;
    this.webhook = manager && this.#webhookOf(inbox, manager);
  }

  /** Needs no queue, which may take its time to open. */
  static async open(app: App): Promise<Following> {
    const inbox = await app.inbox();
    return new Following(app, inbox, app.settings.webhooks ? await app.manager() : undefined);
  }

  #webhookOf(inbox: Journal, manager: SubscriptionManager): WebhookOptions {
    const { settings, warehouse, secrets, log, now, erasing } = this.#app;
    const { verificationToken, secrets: keys } = settings.webhooks!;
    const isErased = createForgotten({ warehouse, tokens: secrets });
    const isForgotten = async (id: string) => erasing?.serviceUserIds.includes(id) || isErased(id);
    return {
      verificationToken,
      secrets: keys,
      headerPrefix: settings.headerPrefix,
      windowMs: settings.signatureWindow * 1000,
      accept: createAccept({ warehouse, inbox, isForgotten }, key => this.#fetching?.filling.add(key)),
      isGone: () => manager.isGone(),
      noteGone: event => manager.noteGone(event),
      now,
      log,
    };
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
