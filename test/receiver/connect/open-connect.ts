import { onTestFinished } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import type { ConnectOptions } from '../../../src/receiver/connect/connect.ts';
import { openReceiver } from '../../../src/receiver/receiver.ts';

export const INVITATION = 'i'.repeat(43);
export const WITHDRAWAL = 'w'.repeat(43);
const STATE = 's'.repeat(43);

/** A receiver over loopback with the pages of invitations over nothing, whose clock is the test's, with what it did and what it wrote. */
export async function openConnectPages(changes: Partial<ConnectOptions> = {}) {
  const clock = { ms: Date.parse('2026-03-01T12:00:00Z') };
  const done: string[] = [];
  const lines: string[] = [];
  const connect: ConnectOptions = {
    publicUrl: 'https://ring.example.org',
    study: { name: 'Night & Day', contact: 'zoe@example.org' },
    authorizeUrl: 'https://service.example/oauth/authorize',
    scopes: ['daily', 'heartrate', 'of-the-future'],
    readText: () => ({ text: 'We study sleep.', hash: 'hash-of-text' }),
    isOpen: async secret => secret === INVITATION,
    begin: async () => ({ url: `https://service.example/oauth/authorize?state=${STATE}`, state: STATE, verifier: 'v'.repeat(43) }),
    finish: async ({ code }) => {
      done.push(`finish ${code}`);
      return {
        kind: 'connected',
        scopes: ['daily'],
        areScopesTold: true,
        withdrawUrl: `https://ring.example.org/connect/withdraw/${WITHDRAWAL}`,
      };
    },
    tellNotAdmitted: async () => {},
    findWithdrawal: async secret => (secret === WITHDRAWAL ? 'open' : undefined),
    withdraw: async secret => {
      if (secret !== WITHDRAWAL) return undefined;
      done.push('withdraw');
      return 'done';
    },
    now: () => clock.ms,
    log: createLog({ level: 'trace', pretty: false, stream: { write: line => void lines.push(line) } }),
    ...changes,
  };
  const receiver = await openReceiver({ ready: async () => {}, connect }, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => receiver.close());
  const at = (path: string, init: RequestInit = {}) => fetch(`${receiver.url}/connect/${path}`, { redirect: 'manual', ...init });
  /** Agrees, and gives the cookie. */
  const agree = async () => {
    const seen = seenIn(await (await at(INVITATION)).text());
    const sent = await at(INVITATION, { method: 'POST', body: new URLSearchParams({ seen }) });
    return sent.headers.get('set-cookie') ?? '';
  };
  const answer = async (query: string, cookie?: string) =>
    at(`callback?${query}`, { headers: { cookie: (cookie ?? (await agree())).split(';')[0] ?? '' } });
  return { receiver, clock, done, lines, at, agree, answer };
}

/** What the form of an invitation sends of the page. */
export const seenIn = (html: string): string => /name="seen" value="([^"]+)"/.exec(html)?.[1] ?? '';

export const ANSWER = `code=abc&state=${STATE}`;
