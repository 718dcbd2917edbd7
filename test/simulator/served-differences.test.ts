import { expect, it, onTestFinished } from 'vitest';
import { resources } from '../../schema/index.ts';
import { addDays } from '../../schema/instant.ts';
import { createService } from '../../src/service/service.ts';
import { createAuthenticate, hashToken } from '../../src/service/tokens.ts';
import { SINGLE } from '../support/declared.ts';
import { openTimeline, userIds } from './open-timeline.ts';

/** Everything that the service serves of somebody in some days, read page by page over HTTP: text by data type and id. */
async function readAll(url: string, userId: string, from: string, to: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const { path, dataType } of SINGLE) {
    let token: string | null = null;
    do {
      const query = new URLSearchParams(token ? { next_token: token } : { start_date: from, end_date: to });
      const response = await fetch(`${url}/v2/usercollection/${path}?${query}`, { headers: { authorization: `Bearer ${userId}` } });
      expect(response.status).toBe(200);
      const page = (await response.json()) as { data: { id: string }[]; next_token: string | null };
      for (const document of page.data) found.set(`${dataType} ${document.id}`, JSON.stringify(document));
      token = page.next_token;
    } while (token);
  }
  return found;
}

function differences(before: Map<string, string>, after: Map<string, string>): string[] {
  const changed = [...after].flatMap(([key, text]) => {
    if (!before.has(key)) return [`create ${key}`];
    return before.get(key) === text ? [] : [`update ${key}`];
  });
  return [...changed, ...[...before.keys()].filter(key => !after.has(key)).map(key => `delete ${key}`)].sort();
}

it('through nine days of three people the events are exactly what differs between what was served before and after', async () => {
  const { timeline, told } = openTimeline({ to: '2025-02-13' });
  const people = userIds(timeline);
  const service = createService({
    resources,
    source: timeline.source,
    authenticate: createAuthenticate(new Map(people.map(userId => [hashToken(userId), { userId, state: 'active' as const }]))),
    clock: () => new Date(0),
    tokenKey: new Uint8Array(32).fill(7),
    settings: { inclusiveEnd: true, pageSize: 500 },
  });
  const url = await service.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => service.close());

  const kinds = new Set<string>();
  const read = (day: string) => Promise.all(people.map(userId => readAll(url, userId, addDays(day, -6), addDays(day, 2))));
  let last: { day: string; after: Map<string, string>[] } | undefined;
  for (let round = 0; round < 24; round++) {
    const day = new Date(timeline.clock.now()).toISOString().slice(0, 10);
    const before: Map<string, string>[] = last?.day === day ? last.after : await read(day);
    told.length = 0;
    // Uneven steps, each of less than a day: one state follows the other.
    await timeline.advance(3600 * [7, 13, 11, 5][round % 4]!);
    const after = await read(day);
    last = { day, after };
    for (const [i, userId] of people.entries()) {
      const events = told.map(({ event }) => event).filter(({ user_id }) => user_id === userId);
      for (const { event_type } of events) kinds.add(event_type);
      expect(events.map(({ event_type, data_type, object_id }) => `${event_type} ${data_type} ${object_id}`).sort()).toEqual(
        differences(before[i]!, after[i]!),
      );
    }
  }
  expect([...kinds].sort()).toEqual(['create', 'delete', 'update']);
});
