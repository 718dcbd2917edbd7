import { resources } from '../../schema/index.ts';

// What follows from the list of document types: a test to which their number is nothing counts by these.

/** The types that the specification knows: of these alone there are tests with literal documents and tables. */
export const SPECIFIED = resources.filter(({ paragraph }) => paragraph !== undefined);
/** Everything that a run asks for: each document type, and heart rate. */
export const COLLECTIONS: readonly string[] = [...resources.map(({ name }) => name), 'heart_rate'];
/** One for each operation and document type. */
export const SUBSCRIPTIONS = 3 * resources.length;
/** The collections that have days. */
export const DATED_COLLECTIONS = resources.filter(({ dated }) => dated).length + 1;
