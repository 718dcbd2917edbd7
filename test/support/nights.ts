import type { WireDocument } from '../../schema/resource.ts';

/** A night with three samples, typed by hand from section 2.12. */
export const night = (id: string, day = '2025-03-09', changes: WireDocument = {}): WireDocument => ({
  id,
  bedtime_end: `${day}T07:01:00.000+01:00`,
  bedtime_start: `${day}T01:05:00.000+01:00`,
  day,
  heart_rate: { interval: 300, items: [52, null, 49], timestamp: `${day}T01:05:00.000+01:00` },
  low_battery_alert: false,
  period: 0,
  time_in_bed: 21360,
  type: 'long_sleep',
  ...changes,
});
