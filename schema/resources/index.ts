// A document type has one line here, in any order: the paragraph of the specification says where it stands.

export { dailyActivity } from './daily-activity.ts';
export { dailyCardiovascularAge } from './daily-cardiovascular-age.ts';
export { dailyReadiness } from './daily-readiness.ts';
export { dailyResilience } from './daily-resilience.ts';
export { dailySleep } from './daily-sleep.ts';
export { dailySpo2 } from './daily-spo2.ts';
export { dailyStress } from './daily-stress.ts';
export { enhancedTag } from './enhanced-tag.ts';
export { restModePeriod } from './rest-mode-period.ts';
export { ringBatteryLevel } from './ring-battery-level.ts';
export { ringConfiguration } from './ring-configuration.ts';
export { session } from './session.ts';
export { sleep } from './sleep.ts';
export { sleepTime } from './sleep-time.ts';
export { vo2Max } from './vo2-max.ts';
export { workout } from './workout.ts';
