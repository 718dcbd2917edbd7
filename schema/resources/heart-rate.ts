import { z } from 'zod';
import { choice, instant, integer } from '../fields.ts';

/**
 * The heart-rate time series (2.14). No document: rows without an identifier, told apart by user, timestamp and source.
 */
export const heartRate = {
  name: 'heart_rate',
  paragraph: '2.14',
  summary: 'Heart rate around the clock, one row for each measurement.',
  scope: 'heartrate',
  /** The path of 4.3, and the one without the sandbox prefix that live services have. */
  sandboxPath: '/v2/sandbox/usercollection/heartrate',
  plainPath: '/v2/usercollection/heartrate',
  row: z.object({
    timestamp: instant('Moment of the measurement'),
    timestamp_unix: integer('The same moment, since the Unix epoch', 'ms'),
    bpm: integer('Heart rate', 'beats/min'),
    source: choice(['awake', 'workout', 'rest', 'sleep', 'live', 'session'], 'What the person was doing'),
  }),
} as const;

export type HeartRate = typeof heartRate;
