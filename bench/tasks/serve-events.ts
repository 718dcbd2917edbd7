import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resources } from '../../schema/index.ts';
import { type Cut, findAccount, sendPage, sendText } from '../answer-page.ts';
import { serviceUserOf } from '../events.ts';
import { HEART_RATE_PAGE_SIZE, PAGE_SIZE } from '../pipeline.ts';
import { generateHeartRate, idsOf, type Recorded, type Recording, readRecorded, slice } from '../recording.ts';
import { performTask } from '../task.ts';

export interface ServeEventsJob {
  recording: Recording;
  /** Of more accounts than recorded people several are one person. */
  accounts: number;
}

interface Person {
  recorded: Recorded;
  /** Where each document lies. */
  places: Map<string, number>;
}

const COLLECTIONS = '/v2/usercollection/';
const SUBSCRIPTIONS = '/v2/webhook/subscription';
/** What a sweep of heart rate reads, and a day on either side. */
const HEART_RATE_DAYS = 5;

/**
 * Serves what events announce: recorded documents, singly and by range, the last days of heart rate, and subscriptions, which are granted
 * without a look at the callback. Nothing is serialised on the way.
 */
performTask(async ({ recording, accounts }: ServeEventsJob) => {
  const byDay: Cut = { by: 'day', pageSize: PAGE_SIZE };
  const byMoment: Cut = { by: 'moment', pageSize: HEART_RATE_PAGE_SIZE };
  const people = new Map<string, Person[]>();
  for (const { name, path, dated } of resources) {
    const load = (user: string): Person => {
      const recorded = dated ? readRecorded(recording, user, name) : { keys: [], json: Buffer.alloc(0), starts: [0] };
      return { recorded, places: new Map(idsOf(recorded).map((id, place) => [id, place])) };
    };
    people.set(path, recording.users.map(load));
  }
  const heartRates = generateHeartRate(recording.users.length, HEART_RATE_DAYS);
  const subscriptions: string[] = [];

  const answer = (target: string, authorization: string | undefined, response: ServerResponse) => {
    const account = findAccount(authorization, accounts);
    if (account === undefined) return sendText(response, 401, '{"detail":"Unauthorized"}');
    const person = account % recording.users.length;
    const [path, search] = target.split('?', 2);
    const [name, id] = path!.slice(COLLECTIONS.length).split('/', 2);
    if (name === 'personal_info') return sendText(response, 200, JSON.stringify({ id: serviceUserOf(account) }));
    if (name === 'heartrate') return sendPage(response, heartRates[person]!, new URLSearchParams(search), byMoment);
    const found = people.get(name!)?.[person];
    if (!found) return sendText(response, 404, '{"detail":"Not Found"}');
    if (id === undefined) return sendPage(response, found.recorded, new URLSearchParams(search), byDay);
    const place = found.places.get(decodeURIComponent(id));
    if (place === undefined) return sendText(response, 404, '{"detail":"Document not found."}');
    const document = slice(found.recorded, place, place + 1);
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': document.length });
    response.end(document);
  };

  const subscribe = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method === 'GET') return sendText(response, 200, `[${subscriptions.join()}]`);
    if (request.method !== 'POST') return sendText(response, 405, '{"detail":"Method Not Allowed"}');
    const { callback_url, event_type, data_type } = JSON.parse(Buffer.concat(await request.toArray()).toString());
    const expiration_time = new Date(Date.now() + 90 * 86_400_000).toISOString();
    const subscription = JSON.stringify({ id: crypto.randomUUID(), callback_url, event_type, data_type, expiration_time });
    subscriptions.push(subscription);
    sendText(response, 201, subscription);
  };

  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    if (request.url!.startsWith(SUBSCRIPTIONS)) void subscribe(request, response);
    else answer(request.url!, request.headers.authorization, response);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
});
