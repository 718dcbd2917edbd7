import { z } from 'zod';
import { findDayNumber } from '../../schema/instant.ts';
import type { Edit } from './users/edits.ts';

const about = {
  userId: z.string(),
  day: z.string().refine(text => findDayNumber(text) !== undefined, 'Input should be a day, YYYY-MM-DD'),
};
const ofSleep = { ...about, id: z.string().min(1) };

/** An edit as it is kept, and as it comes in. */
export const editSchema: z.ZodType<Edit> = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('delete-sleep'), ...ofSleep }),
  z.object({ kind: z.literal('retype-sleep'), ...ofSleep, type: z.enum(['deleted', 'sleep', 'long_sleep', 'late_nap', 'rest']) }),
  z.object({ kind: z.literal('edit-bedtime'), ...ofSleep, startShift: z.int(), endShift: z.int() }),
  z.object({ kind: z.literal('reanalyse-day'), ...about }),
  z.object({ kind: z.literal('record-nap'), ...about, start: z.int(), end: z.int() }),
]);
