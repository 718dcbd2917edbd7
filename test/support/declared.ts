import { resources } from '../../schema/index.ts';
import { dataTypesOf } from '../../schema/resource.ts';

// What follows from the list of document types: a test to which their number is nothing counts by these.

/** The types that the specification knows: of these alone there are tests with literal documents and tables. */
export const SPECIFIED = resources.filter(({ paragraph }) => paragraph !== undefined);
/** Everything that a run asks for: each document type, and heart rate. */
export const COLLECTIONS: readonly string[] = [...resources.map(({ name }) => name), 'heart_rate'];
/** Those whose documents have an identifier of their own, and a route. */
export const SINGLE = resources.filter(({ identifiedBy }) => identifiedBy === undefined);
/** One for each operation and document type that has events. */
export const SUBSCRIPTIONS = 3 * dataTypesOf(resources).length;
/** The collections that have days. */
export const DATED_COLLECTIONS = resources.filter(({ dated }) => dated).length + 1;
