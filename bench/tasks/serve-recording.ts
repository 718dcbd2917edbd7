import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Cut, findAccount, sendPage, sendText } from '../answer-page.ts';
import { HEART_RATE, type Recorded, type Recording, readRecorded, resourceNamed } from '../recording.ts';
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
  /** 0: any. */
  port: number;
}

/** Serves recorded documents: ranges by document, pages cut where asked, nothing serialised on the way. */
performTask(async ({ recording, collections, accounts, pageSize, heartRatePageSize, delayMs, port }: ServeJob) => {
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
});
