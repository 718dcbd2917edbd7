import { createAccept, eventQueue } from '../../jobs/accept-event.ts';
import { type EventLine, startFetching } from '../../jobs/fetch-document.ts';
import { type Schedules, startSchedules } from '../../jobs/sweeps/schedules.ts';
import { sweepAfterLoss } from '../../jobs/sweeps/sweep.ts';
import type { WebhookOptions } from '../receiver/webhook.ts';
import type { Owner } from './owner.ts';

/** What goes on while the data folder is owned: schedules, and with webhooks the events and the subscriptions that bring them. */
export interface Following {
  /** For the receiver; undefined where webhooks are not configured. */
  webhook: WebhookOptions | undefined;
  /** Works off what was accepted, and keeps the subscriptions. The receiver must be listening: the service verifies it meanwhile. */
  start(options?: { onEvent?: (line: EventLine) => void }): Promise<Schedules>;
}

export async function followEvents(owner: Owner): Promise<Following> {
  const { settings, warehouse, log, now } = owner;
  const { webhooks } = settings;
  const pipeline = await owner.pipeline();
  const keeper = webhooks ? await owner.keeper() : undefined;
  const webhook: WebhookOptions | undefined =
    webhooks && keeper
      ? {
          verificationToken: webhooks.verificationToken,
          secrets: webhooks.secrets,
          headerPrefix: settings.headerPrefix,
          windowMs: settings.signatureWindow * 1000,
          accept: createAccept(pipeline, await eventQueue(warehouse)),
          isGone: keeper.isGone,
          noteGone: keeper.noteGone,
          now,
          log,
        }
      : undefined;

  return {
    webhook,
    async start({ onEvent } = {}) {
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
      // What an earlier process accepted is worked off also where webhooks are configured no more.
      await startFetching(pipeline, { onHeartRate: schedules.requestHeartRate, ...(onEvent ? { onEvent } : {}) });
      keeper?.start();
      if (pipeline.queues.startedEmpty) sweepAfterLoss(pipeline, settings.nightlyDays, () => pipeline.queues.forgetLoss());
      return schedules;
    },
  };
}
