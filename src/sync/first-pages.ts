import { dayOfMicros } from '../../schema/instant.ts';
import { heartRate } from '../../schema/resources/heart-rate.ts';
import type { Page } from '../client/client.ts';
import type { Pipeline } from './pipeline.ts';

const HOUR_MS = 3_600_000;

/** Of each collection, by its name, what asks for the first page of today: one request, with which it shows that it answers. */
export function firstPages(
  { client, warehouse, now }: Pick<Pipeline, 'client' | 'warehouse' | 'now'>,
  token: string,
  signal?: AbortSignal,
): Map<string, () => AsyncGenerator<Page>> {
  const today = dayOfMicros(now() * 1000);
  const iso = (ms: number) => new Date(ms).toISOString();
  return new Map([
    ...warehouse.resources.map((resource): [string, () => AsyncGenerator<Page>] => [
      resource.name,
      () => client.documents(resource, { token, signal, ...(resource.dated ? { from: today, to: today } : {}) }),
    ]),
    [heartRate.name, () => client.heartRate({ token, from: iso(now() - HOUR_MS), to: iso(now()), signal })],
  ]);
}

/** Asks for a first page. Throws ServiceError. */
export async function ask(read: () => AsyncGenerator<Page>): Promise<void> {
  for await (const _ of read()) return;
}
