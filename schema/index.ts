import type { Resource } from './resource.ts';
import { dailyActivity } from './resources/daily-activity.ts';
import { dailyReadiness } from './resources/daily-readiness.ts';
import { dailyResilience } from './resources/daily-resilience.ts';
import { dailySleep } from './resources/daily-sleep.ts';
import { dailySpo2 } from './resources/daily-spo2.ts';
import { dailyStress } from './resources/daily-stress.ts';
import { ringConfiguration } from './resources/ring-configuration.ts';
import { session } from './resources/session.ts';
import { sleep } from './resources/sleep.ts';
import { sleepTime } from './resources/sleep-time.ts';
import { vo2Max } from './resources/vo2-max.ts';

/** Every document type, in the order of the specification (2.3 to 2.13). The one list from which all else derives. */
export const resources: readonly Resource[] = [
  dailyReadiness,
  dailySleep,
  dailyActivity,
  dailySpo2,
  vo2Max,
  ringConfiguration,
  dailyResilience,
  sleepTime,
  dailyStress,
  sleep,
  session,
];
