// Reads a service as a stranger would, with plain fetch. Imports nothing of ours on purpose: it judges what our code wrote.
import { isDeepStrictEqual } from 'node:util';
import { normalise } from './equal-in-meaning.ts';

/** What section 4 and its extensions offer, by name; heart rate apart. */
export const COLLECTIONS: Record<string, string> = {
  daily_readiness: '/v2/usercollection/daily_readiness',
  daily_sleep: '/v2/usercollection/daily_sleep',
  daily_activity: '/v2/usercollection/daily_activity',
  daily_spo2: '/v2/usercollection/daily_spo2',
  vo2_max: '/v2/usercollection/vO2_max',
  ring_configuration: '/v2/usercollection/ring_configuration',
  daily_resilience: '/v2/usercollection/daily_resilience',
  sleep_time: '/v2/usercollection/sleep_time',
  daily_stress: '/v2/usercollection/daily_stress',
  sleep: '/v2/usercollection/sleep',
  session: '/v2/usercollection/session',
};

export const HEART_RATE = ['/v2/usercollection/heartrate', '/v2/sandbox/usercollection/heartrate'];

type Json = Record<string, unknown>;

/** One answer as it is. */
export async function ask(url: string, path: string, token?: string): Promise<{ status: number; body: Json }> {
  const response = await fetch(url + path, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });
  const text = await response.text();
  return { status: response.status, body: text ? (JSON.parse(text) as Json) : {} };
}

/** Every document of a collection, following pages; undefined where it is not offered. */
export async function readCollection(
  url: string,
  path: string,
  token: string,
  parameters: Record<string, string>,
): Promise<Json[] | undefined> {
  const documents: Json[] = [];
  let next: string | null = null;
  do {
    const query = new URLSearchParams(next === null ? parameters : { ...parameters, next_token: next });
    const { status, body } = await ask(url, `${path}?${query}`, token);
    if (status === 404) return undefined;
    if (status !== 200) throw new Error(`${path} answers ${status}: ${JSON.stringify(body)}`);
    documents.push(...(body.data as Json[]));
    next = (body.next_token as string | null | undefined) ?? null;
  } while (next !== null);
  return documents;
}

/** Everything that a token may read of the days from `from` to `to`, by collection; what is not offered is left out. */
export async function readEverything(
  url: string,
  token: string,
  { from, to }: { from: string; to: string },
): Promise<Record<string, Json[]>> {
  const found: Record<string, Json[]> = {};
  for (const [name, path] of Object.entries(COLLECTIONS)) {
    // The end day may be left out: one further is asked for.
    const documents = await readCollection(url, path, token, { start_date: from, end_date: shift(to, 1) });
    if (documents) found[name] = documents.filter(({ day }) => day === undefined || (String(day) >= from && String(day) <= to));
  }
  for (const path of HEART_RATE) {
    const rows: Json[] = [];
    let offered = true;
    for (let day = from; day <= to && offered; day = shift(day, 20)) {
      const end = [shift(day, 20), shift(to, 1)].sort()[0]!;
      const parameters = { start_datetime: `${day}T00:00:00+00:00`, end_datetime: `${end}T00:00:00+00:00` };
      const page = await readCollection(url, path, token, parameters);
      if (page) rows.push(...page);
      else offered = false;
    }
    if (!offered) continue;
    found.heart_rate = rows;
    break;
  }
  return found;
}

export function shift(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
}

/** The first pair that is not equal in meaning; lists of another length differ. */
export function findDifference(there: readonly Json[], here: readonly Json[]): { there: unknown; here: unknown } | undefined {
  if (there.length !== here.length) return { there: `${there.length} documents`, here: `${here.length} documents` };
  const at = there.findIndex((document, i) => !isDeepStrictEqual(normalise(document), normalise(here[i])));
  return at < 0 ? undefined : { there: there[at], here: here[at] };
}
