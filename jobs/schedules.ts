import { messageOf } from '../src/base/errors.ts';
import type { Pipeline } from '../src/sync/pipeline.ts';
import { sweepHeartRates } from '../src/sync/sweeps/heart-rate.ts';
import { judgeMissedEvents, type MissedEvents } from '../src/sync/sweeps/missed-events.ts';
import { type NightlySettings, nightlySchedule } from '../src/sync/sweeps/nightly.ts';
import { keepSchedules, type Schedule } from '../src/sync/sweeps/schedule.ts';
import { sweepSchedule } from '../src/sync/sweeps/sweep.ts';

export interface ScheduleSettings {
  nightly: NightlySettings;
  sweep: { hours: number; days: number };
  heartRateMinutes: number;
  /** Whether events are awaited. */
  webhooks: boolean;
  onMissed?: (missed: MissedEvents) => void;
}

export interface Schedules {
  /** Reads an account's heart rate soon, of the last days and about this one: it has no events, and comes with a night or an activity. */
  requestHeartRate(userId: string): void;
  /** Starts nothing more. */
  close(): void;
}

/** Starts all that `up` does again and again: nights, sweeps, heart rate, and the judging of missed events. */
export async function startSchedules(pipeline: Pipeline, settings: ScheduleSettings): Promise<Schedules> {
  const { nightly, sweep, heartRateMinutes, webhooks, onMissed } = settings;
  const heartRates = sweepHeartRates(pipeline);
  let begun = false;
  const judge = async () => {
    try {
      // What an earlier process accepted came in time, but is in the ledger only when it is worked off: the next time is early enough.
      const accepted = begun ? 0 : pipeline.inbox.size;
      begun = true;
      if (!accepted) await judgeMissedEvents(pipeline, { webhooks, onMissed });
    } catch (error) {
      pipeline.log.warn({ reason: messageOf(error) }, 'missed events were not judged: the next time they are');
    }
  };
  const heartRate: Schedule = {
    name: 'heart-rate',
    repeat: async () => ({ everyMs: heartRateMinutes * 60_000, afterMs: 0 }),
    missed: async () => false,
    run: async () => {
      // First: the reading waits for the service.
      await judge();
      await heartRates.sweepAll();
    },
  };
  const all = [nightlySchedule(pipeline, nightly), sweepSchedule(pipeline, sweep), heartRate];
  const stopWatching = await keepSchedules(pipeline, all).catch(error => {
    heartRates.close();
    throw error;
  });
  return {
    requestHeartRate: heartRates.request,
    close() {
      stopWatching();
      heartRates.close();
    },
  };
}
