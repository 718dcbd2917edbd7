import { z } from 'zod';
import { integerBetween } from '../fields.ts';

const share = (what: string) => integerBetween(1, 100, `Contribution of ${what} to the readiness score`, 'score, 1 to 100').nullish();

/** Readiness contributors, used by daily readiness and by the readiness of a sleep (2.2). */
export const readinessContributors = z.object({
  activity_balance: share('the balance of activity over the past days'),
  body_temperature: share('the body temperature'),
  hrv_balance: share('the heart rate variability trend'),
  previous_day_activity: share('the previous day’s activity'),
  previous_night: share('the previous night’s sleep'),
  recovery_index: share('the time the resting heart rate took to settle at night'),
  resting_heart_rate: share('the resting heart rate'),
  sleep_balance: share('the sleep balance over the past two weeks'),
  sleep_regularity: share('the regularity of bedtimes'),
});
