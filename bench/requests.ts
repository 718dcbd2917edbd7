import { addDays } from '../schema/instant.ts';
import type { Asked } from './fetch-pages.ts';
import { HEART_RATE, type Recording, resourceNamed } from './recording.ts';

/** What a request for heart rate may span is 30 days (specification 4.3); four weeks are what one would take. */
const HEART_RATE_DAYS = 28;

/** What somebody would ask for by hand: documents in one range, heart rate in ranges of four weeks. By account, in the order of collections. */
export function listRequests({ users, from, to }: Recording, collections: readonly string[]): Asked[][] {
  return users.map((user, account) =>
    collections.flatMap(collection => {
      const asked = { user, account, collection };
      if (collection !== HEART_RATE) return [{ ...asked, path: resourceNamed(collection).path, query: { start_date: from, end_date: to } }];
      const ranges: Asked[] = [];
      for (let day = from; day <= to; day = addDays(day, HEART_RATE_DAYS)) {
        const end = [addDays(day, HEART_RATE_DAYS), addDays(to, 1)].sort()[0]!;
        ranges.push({ ...asked, path: 'heartrate', query: { start_datetime: `${day}T00:00:00Z`, end_datetime: `${end}T00:00:00Z` } });
      }
      return ranges;
    }),
  );
}
