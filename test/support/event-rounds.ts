import { setImmediate } from 'node:timers/promises';
import { expect } from 'vitest';
import type { WireDocument } from '../../schema/resource.ts';
import type { Operation } from '../../schema/webhook.ts';
import type { EventHarness, Person } from './event-harness.ts';
import { night } from './nights.ts';
import { below, pick, type Random } from './random-documents.ts';
import { until } from './until.ts';

const DAYS = ['2025-03-05', '2025-03-06', '2025-03-07', '2025-03-08', '2025-03-09'];
const CHANGES = 12;
/** Answers that come after everything else; a token has four places. */
const HELD = 2;

/** Waits for so many turns of the loop: less than a request takes, or more. */
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await setImmediate();
}

/**
 * Until nothing is settled any more: what is left waits for the answers that are held. Where such an answer has all places of the account
 * waiting behind it, the events that found none come back again and again.
 */
async function quiet(harness: EventHarness): Promise<void> {
  let still = 0;
  let lines = -1;
  await until('nothing but what is held is worked on', async () => {
    const { waiting = 0, delayed = 0 } = await harness.queue.getJobCounts('waiting', 'delayed');
    still = harness.lines.length === lines ? still + 1 : 0;
    lines = harness.lines.length;
    return still >= (waiting + delayed === 0 ? 4 : 25);
  });
}

/**
 * One person's nights are made, changed, moved to other days, deleted and made again while earlier answers about them are still on their
 * way. Every change is announced one to five times, late, in any order. In the end the tables are as the service is.
 */
export async function eventRound(harness: EventHarness, name: string, random: Random, hasDocumentRoute: boolean): Promise<void> {
  const person = await harness.person(name, { sleep: [] });
  const before = harness.lines.length;
  let held = 0;
  let release = () => {};
  const released = new Promise<void>(resolve => {
    release = resolve;
  });
  // An answer says what was so when it was asked for, and may come when that has changed.
  const routes = ['/v2/usercollection/sleep', ...(hasDocumentRoute ? ['/v2/usercollection/sleep/*'] : [])];
  for (const route of routes) {
    harness.faults.on(route, async ({ path, token }) => {
      if (token !== `${name}-token` || random() < 0.4) return undefined;
      const answer = answerOf(person.documents.sleep!, path);
      if (held < HELD && random() < 0.2) {
        held++;
        await released;
      } else await turns(below(random, 60));
      return answer;
    });
  }
  const late: { event_type: Operation; object_id: string }[] = [];
  let announced = 0;
  const announce = async (event: { event_type: Operation; object_id: string }) => {
    announced++;
    await person.announce({ data_type: 'sleep', ...event });
  };
  for (let version = 1; version <= CHANGES; version++) {
    const event = change(person, random, version);
    for (let times = 1 + below(random, 5); times > 0; times--) {
      if (random() < 0.5) await announce(event);
      else late.splice(below(random, late.length + 1), 0, event);
    }
    await turns(below(random, 30));
    if (random() < 0.5 && late.length) await announce(late.shift()!);
  }
  for (const event of late) await announce(event);
  await quiet(harness);
  release();
  await harness.settled(before + announced);
  for (const route of routes) harness.faults.on(route, () => undefined);

  const stored = await harness.rows(
    `SELECT id, day, period, (SELECT list(value ORDER BY ts) FROM sleep_heart_rate s WHERE s.sk = d.sk) AS beats
     FROM sleep d WHERE user_id = '${name}' ORDER BY id`,
  );
  const there = person.documents.sleep!.map(({ id, day, period }) => ({ id, day, period, beats: [52, null, period] }));
  expect(stored, name).toEqual(there.sort((a, b) => (String(a.id) < String(b.id) ? -1 : 1)));
  expect(await harness.rows(`SELECT count(*) AS events FROM sync.events WHERE user_id = '${name}'`), name).toEqual([{ events: announced }]);
  expect(
    await harness.rows(`SELECT * FROM sync.events WHERE user_id = '${name}' AND outcome = 'parked' AND reason NOT LIKE '%found%'`),
  ).toEqual([]);
}

const nightOf = (id: string, day: string, version: number): WireDocument =>
  night(id, day, { period: version, heart_rate: { interval: 300, items: [52, null, version], timestamp: `${day}T01:05:00.000+01:00` } });

/** Changes one of three nights, beside one that stays. */
function change({ documents }: Person, random: Random, version: number): { event_type: Operation; object_id: string } {
  const nights = documents.sleep!;
  if (version === 1) {
    nights.push(nightOf('stays', '2025-03-07', version));
    return { event_type: 'create', object_id: 'stays' };
  }
  const id = pick(random, ['a', 'b', 'c']);
  const index = nights.findIndex(document => document.id === id);
  const next = nightOf(id, pick(random, DAYS), version);
  if (index < 0) {
    nights.push(next);
    return { event_type: 'create', object_id: id };
  }
  if (random() < 0.4) {
    nights.splice(index, 1);
    return { event_type: 'delete', object_id: id };
  }
  nights[index] = next;
  return { event_type: 'update', object_id: id };
}

function answerOf(nights: readonly WireDocument[], path: string) {
  if (path.endsWith('/sleep')) return { json: { data: [...nights], next_token: null } };
  const found = nights.find(({ id }) => id === path.split('/').at(-1));
  return found ? { json: found } : { status: 404, json: { detail: 'Document not found.' } };
}
