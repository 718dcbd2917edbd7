import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HEART_RATE, type Recorded, type Recording, readRecorded, resourceNamed, slice } from '../recording.ts';
import { performTask } from '../task.ts';

export interface ServeJob {
  recording: Recording;
  collections: string[];
  /** Tokens are those of `tokenOf`; of more accounts than recorded people several are one person. */
  accounts: number;
  pageSize: number;
  heartRatePageSize: number;
  /** Added to each answer. */
  delayMs: number;
}

/** Serves recorded documents: ranges by document, pages cut where asked, nothing serialised on the way. */
performTask(async ({ recording, collections, accounts, pageSize, heartRatePageSize, delayMs }: ServeJob) => {
  const routes = new Map<string, { name: string; people: Recorded[] }>();
  for (const name of collections) {
    const path = name === HEART_RATE ? 'heartrate' : resourceNamed(name).path;
    routes.set(`/v2/usercollection/${path}`, { name, people: recording.users.map(user => readRecorded(recording, user, name)) });
  }

  const answer = (target: string, authorization: string | undefined, response: ServerResponse) => {
    const [path, search] = target.split('?', 2);
    const route = routes.get(path!);
    const account = Number(/^Bearer token-(\d+)$/.exec(authorization ?? '')?.[1] ?? Number.NaN);
    if (!(account < accounts)) return sendText(response, 401, '{"detail":"Unauthorized"}');
    if (!route) return sendText(response, 404, '{"detail":"Not Found"}');
    const recorded = route.people[account % route.people.length]!;
    const query = new URLSearchParams(search);
    const isHeartRate = route.name === HEART_RATE;
    const [from, to] = query.has('next_token')
      ? query.get('next_token')!.split('-').map(Number)
      : isHeartRate
        ? [findMoment(recorded, query.get('start_datetime')!), findMoment(recorded, query.get('end_datetime')!)]
        : findDays(recorded, query.get('start_date') ?? '', query.get('end_date') ?? '9');
    const end = Math.min(from! + (isHeartRate ? heartRatePageSize : pageSize), to!);
    const head = '{"data":[';
    const tail = `],"next_token":${end < to! ? `"${end}-${to}"` : 'null'}}`;
    const data = slice(recorded, from!, end);
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': head.length + data.length + tail.length });
    response.write(head);
    response.write(data);
    response.end(tail);
  };

  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    const send = () => answer(request.url!, request.headers.authorization, response);
    if (delayMs) setTimeout(send, delayMs);
    else send();
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
});

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': text.length });
  response.end(text);
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
