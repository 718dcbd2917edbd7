import { dayOfMicros } from '../../../schema/instant.ts';
import type { Resource } from '../../../schema/resource.ts';
import { heartRate } from '../../../schema/resources/heart-rate.ts';
import type { Scope } from '../../../schema/scopes.ts';
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
 * @param options.scopes what the person has allowed, where that is known: nothing else is asked for
 * @param options.isOnce one request is enough: who was refused before is only asked whether that still holds
 */
export async function probeAccount(
  { client, warehouse, serviceClock }: Pick<Pipeline, 'client' | 'warehouse' | 'serviceClock'>,
  token: string,
  { scopes, isOnce, signal }: { scopes?: readonly string[] | undefined; isOnce?: true; signal?: AbortSignal | undefined } = {},
): Promise<void> {
  const nowMs = serviceClock.now();
  const today = dayOfMicros(nowMs * 1000);
  const granted = warehouse.resources.filter(
    ({ dated, specified, scope }) => dated && specified.includes('collection') && (scopes?.includes(scope) ?? true),
  );
  const [first, other] = [granted[0], granted.at(-1)];
  const probe = async (resource: Resource) => {
    for await (const _ of client.documents(resource, { token, from: today, to: today, signal })) return;
  };
  if (!first || !other) return probeOthers(client, token, { nowMs, scopes, signal });
  try {
    await probe(first);
  } catch (error) {
    if (isOnce || (!isRefusal(error) && !isNotOffered(error))) throw error;
    await probe(other).catch(second => {
      throw isNotOffered(second) ? error : second;
    });
  }
}

/** Of who has allowed no document: heart rate, or else who they are. Whom neither may be asked nothing is known against. */
async function probeOthers(
  client: Pick<Pipeline['client'], 'heartRate' | 'personalInfo'>,
  token: string,
  { nowMs, scopes, signal }: { nowMs: number; scopes: readonly string[] | undefined; signal: AbortSignal | undefined },
): Promise<void> {
  if (scopes?.includes(heartRate.scope)) {
    const [from, to] = [new Date(nowMs - HOUR_MS).toISOString(), new Date(nowMs).toISOString()];
    for await (const _ of client.heartRate({ token, from, to, signal })) return;
  } else if (scopes?.includes(PERSONAL)) await client.personalInfo(token, signal);
}

const HOUR_MS = 3_600_000;
/** Of which a person’s id is. */
const PERSONAL: Scope = 'personal';
