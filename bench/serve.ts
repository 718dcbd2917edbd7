import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resources } from '../schema/index.ts';
import { generateHeartRate, HEART_RATE, idsOf, type Recorded, type Recording, readRecorded, resourceNamed, slice } from './recording.ts';
import { defineTask } from './task.ts';

/** The sizes of pages that the service has when it is told none. */
export const PAGE_SIZE = 50;
export const HEART_RATE_PAGE_SIZE = 1000;

/** The service's own id of the person of an account. */
export const serviceUserOf = (account: number) => `person-${account}`;

/** How a collection is cut: documents by their days, heart rate by moments. */
export interface Cut {
  by: 'day' | 'moment';
  pageSize: number;
}

/** Sends one page of a recorded collection; nothing is serialised on the way. */
export function sendPage(response: ServerResponse, recorded: Recorded, query: URLSearchParams, { by, pageSize }: Cut): void {
  const [from, to] = query.has('next_token')
    ? query.get('next_token')!.split('-').map(Number)
    : by === 'moment'
      ? [findMoment(recorded, query.get('start_datetime')!), findMoment(recorded, query.get('end_datetime')!)]
      : findDays(recorded, query.get('start_date') ?? '', query.get('end_date') ?? '9');
  const end = Math.min(from! + pageSize, to!);
  const head = '{"data":[';
  const tail = `],"next_token":${end < to! ? `"${end}-${to}"` : 'null'}}`;
  const data = slice(recorded, from!, end);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': head.length + data.length + tail.length });
  response.write(head);
  response.write(data);
  response.end(tail);
}

export function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

/** The number of the account that asks: its token holds it. */
export function findAccount(authorization: string | undefined, accounts: number): number | undefined {
  const account = Number(/^Bearer token-(\d+)$/.exec(authorization ?? '')?.[1] ?? Number.NaN);
  return account < accounts ? account : undefined;
}

/** Both days included. */
function findDays({ keys }: Recorded, first: string, last: string): [number, number] {
  return [firstIndex(keys, key => key >= first), firstIndex(keys, key => key > last)];
}

const findMoment = ({ keys }: Recorded, moment: string) => firstIndex(keys, key => Number(key) >= Date.parse(moment));

function firstIndex(keys: readonly string[], isThere: (key: string) => boolean): number {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isThere(keys[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}

export interface ServeJob {
  recording: Recording;
  collections: string[];
  /** Tokens are those of `tokenOf`; of more accounts than recorded people several are one person. */
  accounts: number;
  pageSize: number;
  heartRatePageSize: number;
  /** Added to each answer. */
  delayMs: number;
  /** 0: any. */
  port: number;
}

/** Serves recorded documents: ranges by document, pages cut where asked, nothing serialised on the way. */
export const serveRecording = defineTask(
  import.meta.url,
  'serveRecording',
  async ({ recording, collections, accounts, pageSize, heartRatePageSize, delayMs, port }: ServeJob) => {
    const routes = new Map<string, { cut: Cut; people: Recorded[] }>();
    for (const name of collections) {
      const path = name === HEART_RATE ? 'heartrate' : resourceNamed(name).path;
      const cut: Cut = name === HEART_RATE ? { by: 'moment', pageSize: heartRatePageSize } : { by: 'day', pageSize };
      routes.set(`/v2/usercollection/${path}`, { cut, people: recording.users.map(user => readRecorded(recording, user, name)) });
    }

    const answer = (target: string, authorization: string | undefined, response: ServerResponse) => {
      const [path, search] = target.split('?', 2);
      const route = routes.get(path!);
      const account = findAccount(authorization, accounts);
      if (account === undefined) return sendText(response, 401, '{"detail":"Unauthorized"}');
      if (!route) return sendText(response, 404, '{"detail":"Not Found"}');
      sendPage(response, route.people[account % route.people.length]!, new URLSearchParams(search), route.cut);
    };

    const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
      const send = () => answer(request.url!, request.headers.authorization, response);
      if (delayMs) setTimeout(send, delayMs);
      else send();
    });
    await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve));
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  },
);

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

const COLLECTIONS_PATH = '/v2/usercollection/';
const SUBSCRIPTIONS_PATH = '/v2/webhook/subscription';
/** What a sweep of heart rate reads, and a day on either side. */
const SWEPT_DAYS = 5;

/**
 * Serves what events announce: recorded documents, singly and by range, the last days of heart rate, and subscriptions, which are granted
 * without a look at the callback. Nothing is serialised on the way.
 */
export const serveEvents = defineTask(import.meta.url, 'serveEvents', async ({ recording, accounts }: ServeEventsJob) => {
  const byDay: Cut = { by: 'day', pageSize: PAGE_SIZE };
  const byMoment: Cut = { by: 'moment', pageSize: HEART_RATE_PAGE_SIZE };
  const people = new Map<string, Person[]>();
  for (const { name, path, dated, dataType } of resources) {
    const load = (user: string): Person => {
      const recorded = dated && dataType ? readRecorded(recording, user, name) : { keys: [], json: Buffer.alloc(0), starts: [0] };
      return { recorded, places: new Map(idsOf(recorded).map((id, place) => [id, place])) };
    };
    people.set(path, recording.users.map(load));
  }
  const heartRates = generateHeartRate(recording.users.length, SWEPT_DAYS);
  const subscriptions: string[] = [];

  const answer = (target: string, authorization: string | undefined, response: ServerResponse) => {
    const account = findAccount(authorization, accounts);
    if (account === undefined) return sendText(response, 401, '{"detail":"Unauthorized"}');
    const person = account % recording.users.length;
    const [path, search] = target.split('?', 2);
    const [name, id] = path!.slice(COLLECTIONS_PATH.length).split('/', 2);
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
    if (request.url!.startsWith(SUBSCRIPTIONS_PATH)) void subscribe(request, response);
    else answer(request.url!, request.headers.authorization, response);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
});
