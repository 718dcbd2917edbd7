import { inOrder, type Resource } from './resource.ts';
import * as declared from './resources/index.ts';

/** Every document type, in the order of the specification; one beyond it comes last. The one list from which all else derives. */
export const resources: readonly Resource[] = inOrder(Object.values(declared));

/** What the columns with the day of a document are called. */
export const DAY_FIELDS: readonly string[] = [...new Set(resources.map(({ dayField }) => dayField))];
