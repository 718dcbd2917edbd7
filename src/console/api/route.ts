import { z } from 'zod';
import { findDayNumber } from '../../../schema/instant.ts';

/** Who may ask: `person` sees the rows of one account, `reader` everybody's, `operator` may act too. Each may what those before may. */
export const roles = ['person', 'reader', 'operator'] as const;
export type Role = (typeof roles)[number];

/** What a route takes and gives: parameters of its path, its query and its body are one object. */
export interface Route<Input extends z.ZodObject = z.ZodObject, Answer extends z.ZodType = z.ZodType> {
  summary: string;
  /** Who may ask at least; null: anybody, without a session. */
  role: Role | null;
  input: Input;
  answer: Answer;
  /** Answered from the snapshot alone: the same until another is published. */
  ofSnapshot?: true;
  /** Of an answer that streams: its type, and what a line of it is, where it is lines of JSON. */
  streams?: { type: string; line?: z.ZodType };
}

export const route = <Input extends z.ZodObject, Answer extends z.ZodType>(declared: Route<Input, Answer>) => declared;

/** What is given bit by bit, in another form than JSON. */
export interface Streamed {
  /** As a `Content-Type`. */
  type: string;
  headers?: Readonly<Record<string, string>>;
  /** Ended early, by its `return`, when the browser goes away. */
  body: AsyncIterable<string | Uint8Array>;
}

/** The answer of a route that streams. */
export const streamed = z.custom<Streamed>();

export const day = z.string().regex(/^\d{4}-\d{2}-\d{2}$/, 'a day, as 2025-11-22');

/** A day that somebody asks for: one that there is. */
export const givenDay = day.refine(text => findDayNumber(text) !== undefined, 'a day, as 2025-11-22');

/** Epoch seconds. */
export const instant = z.number();

/** Columns of the same length: `{"day":[…],"value":[…]}`. */
export const columns = <Shape extends z.ZodRawShape>(shape: Shape) => z.strictObject(shape);

export const errorAnswer = z.strictObject({
  error: z.strictObject({
    kind: z.string(),
    message: z.string(),
    /** What to do next. */
    help: z.string(),
  }),
});
export type ErrorAnswer = z.infer<typeof errorAnswer>;
