import type { z } from 'zod';
import type { sentence } from './night.ts';
import type { AnswerOf } from './routes.ts';

/** A month of a person, as it goes to paper. */
export interface Report {
  id: string;
  /** `November 2025` */
  name: string;
  /** The days that it has, of a month that is not over those until now. */
  from: string;
  to: string;
  sentence: z.output<typeof sentence>;
  raster: AnswerOf<'GET people/:id/raster'>;
  /** Those that are drawn, which are also the columns of the table. */
  trends: AnswerOf<'GET people/:id/trends'>['trends'];
  /** Why a day has no night, in a few words. */
  missing: Readonly<Record<string, string>>;
  notes: { unusual: readonly string[]; missing: readonly string[]; measured: readonly string[] };
  /** What made it, and of when the data is. */
  made: string;
}

/** Makes the page of it: a whole document of HTML that needs nothing else. */
export type RenderReport = (report: Report) => string;
