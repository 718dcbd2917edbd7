import { dailyActivity } from './daily-activity.ts';
import { dailyReadiness } from './daily-readiness.ts';
import { dailyResilience } from './daily-resilience.ts';
import { dailySleep } from './daily-sleep.ts';
import { dailySpo2 } from './daily-spo2.ts';
import { dailyStress } from './daily-stress.ts';
import type { Resource } from './resource.ts';
import { ringConfiguration } from './ring-configuration.ts';
import { session } from './session.ts';
import { sleep } from './sleep.ts';
import { sleepTime } from './sleep-time.ts';
import { vo2Max } from './vo2-max.ts';

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
