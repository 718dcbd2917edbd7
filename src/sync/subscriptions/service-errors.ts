import { ServiceError } from '../../client/error.ts';

/** Concern all of them alike: a dead client, a wrong address. What answered 5xx to one may still make the others. */
const OF_ALL: ReadonlySet<ServiceError['kind']> = new Set([
  'unauthorized',
  'forbidden',
  'not_found',
  'redirected',
  'rate_limited',
  'stopped',
]);

/** Whether an error concerns one subscription, and not all of them. */
export const isOfOne = (error: unknown): error is ServiceError => error instanceof ServiceError && !OF_ALL.has(error.kind);

/** Whether the service refuses what this field of the request says. */
export const isAbout = (error: unknown, field: string): boolean =>
  error instanceof ServiceError && error.status === 422 && error.field === field;

/** The fields of a create that name which subscription is meant (4.4, rule 1). */
const NAMING: ReadonlySet<string | undefined> = new Set(['event_type', 'data_type', 'body', undefined]);

/** Whether the service says that it has this subscription already: by 409, or where it knows only validation errors (4.4), by the type of one. */
export const saysItExists = (error: ServiceError): boolean => error.exists === true && (error.status === 409 || NAMING.has(error.field));

/** What is asked for; undefined where the service answers 404. */
export async function orUndefined404<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof ServiceError && error.kind === 'not_found') return undefined;
    throw error;
  }
}
