import type { Fetching } from '../../jobs/process-event.ts';
import type { WebhookOptions } from '../receiver/webhook.ts';
import { createAccept } from '../sync/events/accept-event.ts';
import type { EventLine } from '../sync/events/advance-event.ts';
import { createForgotten } from '../sync/events/erased-ids.ts';
import { takeUpEvents } from '../sync/events/take-up.ts';
import type { App } from './app.ts';

/** What goes on while the data folder is owned: schedules, and with webhooks the events and the subscriptions that bring them. */
export interface Following {
  /** For the receiver; undefined where webhooks are not configured. Events are accepted from the beginning, and wait for `start`. */
  webhook: WebhookOptions | undefined;
  /** Keeps the subscriptions. The receiver must be listening: the service verifies it meanwhile. */
  subscribe(): void;
  /** Works off what was accepted. Where it fails it has left nothing behind and may be called again. */
  start(options?: { onEvent?: (line: EventLine) => void }): Promise<{ close(): Promise<void> }>;
}

/** Needs no queue, which may take its time to open. */
export async function followEvents(app: App): Promise<Following> {
  const { settings, warehouse, secrets, log, now } = app;
  const { webhooks } = settings;
  const inbox = await app.inbox();
  const manager = webhooks ? await app.manager() : undefined;
  const isForgotten = createForgotten({ warehouse, tokens: secrets });
  let fetching: Fetching | undefined;
  const webhook: WebhookOptions | undefined =
    webhooks && manager
      ? {
          verificationToken: webhooks.verificationToken,
          secrets: webhooks.secrets,
          headerPrefix: settings.headerPrefix,
          windowMs: settings.signatureWindow * 1000,
          accept: createAccept(
            { warehouse, inbox, isForgotten: async id => app.erasing?.serviceUserIds.includes(id) || isForgotten(id) },
            key => fetching?.filling.add(key),
          ),
          isGone: () => manager.isGone(),
          noteGone: event => manager.noteGone(event),
          now,
          log,
        }
      : undefined;

  return {
    webhook,
    subscribe: () => manager?.start(),
    async start({ onEvent } = {}) {
      // Loaded only now: BullMQ would keep the receiver from listening.
      const [pipeline, { startFetching }, { startSchedules }] = await Promise.all([
        app.pipeline(),
        import('../../jobs/process-event.ts'),
        import('../../jobs/schedules.ts'),
      ]);
      const schedules = await startSchedules(pipeline, {
        nightly: { pattern: settings.nightly, timeZone: settings.timeZone, days: settings.nightlyDays },
        sweep: { hours: settings.sweepHours, days: settings.sweepDays },
        heartRateMinutes: settings.heartRateMinutes,
        webhooks: webhook !== undefined,
        onMissed: ({ user, collection, count }) =>
          pipeline.onFailure({
            reason: 'events_missed',
            user,
            collection,
            message: `${count} changes were found that no event had announced`,
          }),
      });
      try {
        // What an earlier process accepted is worked off also where webhooks are configured no more.
        fetching = await startFetching(pipeline, { onHeartRate: schedules.requestHeartRate, ...(onEvent ? { onEvent } : {}) });
      } catch (error) {
        schedules.close();
        throw error;
      }
      void takeUpEvents(pipeline);
      return {
        async close() {
          schedules.close();
          await fetching?.filling.close();
        },
      };
    },
  };
}
