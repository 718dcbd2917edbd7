import { dayOfMicros } from '../../../schema/instant.ts';
import { ServiceError } from '../../client/error.ts';
import type { Pipeline } from '../pipeline.ts';

/** Whether the service refused: a dead token, a lapsed membership, or a missing permission. */
export const isRefusal = (error: unknown): error is ServiceError =>
  error instanceof ServiceError && (error.kind === 'unauthorized' || error.kind === 'forbidden');

/** Whether the service has no such collection, as far as it has said so once. */
export const isNotOffered = (error: unknown) => error instanceof ServiceError && error.kind === 'not_found';

/**
 * Asks whether the service takes a token at all. Throws the refusal when two collections of different kinds refuse: one alone may be
 * what the permission lacks, or may not be offered.
 */
export async function probeAccount(
  { client, warehouse, serviceClock }: Pick<Pipeline, 'client' | 'warehouse' | 'serviceClock'>,
  token: string,
): Promise<void> {
  try {
    return await client.probe(token);
  } catch (first) {
    if (!isRefusal(first) && !isNotOffered(first)) throw first;
    const other = warehouse.mappings
      .map(({ resource }) => resource)
      .findLast(({ dated, specified }) => dated && specified.includes('collection'));
    if (!other) throw first;
    const today = dayOfMicros(serviceClock.now() * 1000);
    try {
      for await (const _ of client.documents(other, { token, from: today, to: today })) return;
    } catch (second) {
      throw isNotOffered(second) ? first : second;
    }
  }
}
