import { countEvents } from './accept-event.ts';
import { sweepHeartRates } from './heart-rate.ts';
import { judgeMissedEvents, type MissedEvents } from './missed-events.ts';
import { type NightlySettings, nightlySchedule } from './nightly.ts';
import type { Pipeline } from './pipeline.ts';
import { keepSchedules, type Schedule } from './schedule.ts';
import { sweepSchedule } from './sweep.ts';

export interface ScheduleSettings {
  nightly: NightlySettings;
  sweep: { hours: number; days: number };
  heartRateMinutes: number;
  /** Whether events are awaited. */
  webhooks: boolean;
  onMissed?: (missed: MissedEvents) => void;
}

export interface Schedules {
  /** Reads an account's heart rate soon: it has no events, and comes with a night or an activity. */
  requestHeartRate(userId: string): void;
  /** Starts nothing more. */
  close(): void;
}

/** Starts all that `up` does again and again: nights, sweeps, heart rate, and the judging of missed events. */
export async function startSchedules(pipeline: Pipeline, settings: ScheduleSettings): Promise<Schedules> {
  const { nightly, sweep, heartRateMinutes, webhooks, onMissed } = settings;
  const heartRates = sweepHeartRates(pipeline);
  let begun = false;
  const heartRate: Schedule = {
    name: 'heart-rate',
    repeat: async () => ({ everyMs: heartRateMinutes * 60_000, afterMs: 0 }),
    missed: async () => false,
    run: async () => {
      await heartRates.sweepAll();
      // What an earlier process accepted came in time, but is in the ledger only when it is worked off: the next time is early enough.
      if (begun || (await countEvents(pipeline)) === 0) await judgeMissedEvents(pipeline, { webhooks, onMissed });
      begun = true;
    },
  };
  await keepSchedules(pipeline, [nightlySchedule(pipeline, nightly), sweepSchedule(pipeline, sweep), heartRate]);
  return { requestHeartRate: heartRates.request, close: heartRates.close };
}
