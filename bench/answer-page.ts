import type { ServerResponse } from 'node:http';
import { type Recorded, slice } from './recording.ts';

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
