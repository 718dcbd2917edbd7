/** The number of the day of a moment or day, as SQL; day 0 is 1970-01-01. */
export const dayNumber = (moment: string): string => `date_diff('day', TIMESTAMP '1970-01-01', ${moment})`;

/** The day of a number, as SQL. */
export const dayOfNumber = (n: number | string): string => `(DATE '1970-01-01' + (${n})::INTEGER)`;
