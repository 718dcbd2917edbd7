import { expect, test } from 'vitest';
import { below, pick, type Random, randomFrom } from '../../support/random-documents.ts';
import { isWhole, seed } from '../../support/whole.ts';
import { RawConnection, requestText } from '../raw.ts';
import { ANSWER, INVITATION, openConnectPages, WITHDRAWAL } from './open-connect.ts';

const ROUNDS = isWhole ? 50_000 : 800;

const MARK = 'zqx-mark-zqx';
const BITS = [
  `<script>${MARK}</script>`,
  `"><img src=x onerror=${MARK}>`,
  `' or '${MARK}'='${MARK}`,
  `../../../../etc/${MARK}`,
  '%2e%2e%2f',
  '%00',
  '%',
  '%zz',
  '%c0%ae',
  '\u00ff\u00fe',
  '__proto__',
  'constructor',
  '{{7*7}}',
  '$(zqx-mark-zqx)',
  'a'.repeat(200),
  'state',
  'code',
  '=&=&',
  '?',
  '#',
  ';',
  ':80',
  '//zqx-mark-zqx.example',
  '\\',
  INVITATION.slice(1),
  WITHDRAWAL.slice(1),
  INVITATION.toUpperCase(),
];

const some = (random: Random, most: number) => Array.from({ length: below(random, most) }, () => pick(random, BITS)).join('');

const PATHS = [
  '',
  '/',
  `/${INVITATION}`,
  `/${INVITATION}`,
  `/${WITHDRAWAL}`,
  '/callback',
  '/withdraw',
  `/withdraw/${WITHDRAWAL}`,
  `/withdraw/${INVITATION}`,
  `/${WITHDRAWAL}`,
  '//',
];

/** A request that is near to one that means something. */
function hostileRequest(random: Random): { method: string; target: string; headers: [string, string][]; body: Buffer } {
  const method = pick(random, ['GET', 'GET', 'POST', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']);
  const query = pick(random, [
    '',
    `?${ANSWER}`,
    `?${some(random, 4)}`,
    `?state=${some(random, 3)}&code=${some(random, 3)}`,
    `?${ANSWER}&${ANSWER}`,
  ]);
  const target = `/connect${pick(random, PATHS)}${random() < 0.5 ? some(random, 3) : ''}${query}`.replace(/[\s]/g, '+');
  const headers: [string, string][] = [['Host', pick(random, ['ring.example.org', some(random, 2).replace(/[^\w.:-]/g, '') || 'x'])]];
  const maybe = (name: string, value: string) => {
    if (random() < 0.4) headers.push([name, value.replace(/[\r\n]/g, '')]);
  };
  maybe('Accept-Language', some(random, 4));
  maybe('Cookie', `ringneck_connect=${some(random, 4)}; ${some(random, 3)}`);
  maybe(
    'Content-Type',
    pick(random, ['application/json', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', some(random, 2)]),
  );
  maybe('Sec-Fetch-Site', pick(random, ['same-origin', 'cross-site', 'same-site', 'none', some(random, 1)]));
  maybe('X-Forwarded-For', some(random, 3));
  maybe('X-Forwarded-Proto', some(random, 2));
  const body = method === 'GET' ? '' : pick(random, ['', 'seen=hash-of-page', `seen=${some(random, 3)}`, '{"a":', 'a'.repeat(5_000)]);
  return { method, target, headers, body: Buffer.from(body) };
}

test(`whatever strangers send, the pages say no more than they should and do nothing that was not asked for, seed ${seed}`, async () => {
  const { receiver, done, lines } = await openConnectPages({ requestsPerMinute: 1_000_000 });
  const random = randomFrom(seed);
  let connection = await RawConnection.open(receiver.url);
  const seen = new Set<number>();
  let withdrawals = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const { method, target, headers, body } = hostileRequest(random);
    if (connection.closed) connection = await RawConnection.open(receiver.url);
    const answer = await connection.ask(requestText(`${method} ${target} HTTP/1.1`, [...headers, ['Connection', 'close']], body));
    await new Promise<void>(resolve => (connection.closed ? resolve() : connection.socket.once('close', () => resolve())));
    const about = `seed ${seed}, round ${round}: ${method} ${target}`;
    expect([about, answer !== undefined]).toEqual([about, true]);
    if (!answer) continue;
    seen.add(answer.status);
    expect([about, [200, 303, 400, 403, 404, 413, 414, 415].includes(answer.status)]).toEqual([about, true]);
    expect([about, (answer.headers + answer.body).includes(MARK)]).toEqual([about, false]);
    if (answer.headers.includes('text/html')) {
      expect([about, /^cache-control: no-store$/im.test(answer.headers), /^referrer-policy: no-referrer$/im.test(answer.headers)]).toEqual([
        about,
        true,
        true,
      ]);
      expect([about, answer.headers.includes("default-src 'none'")]).toEqual([about, true]);
    }
    const isWithdrawal = method === 'POST' && decodes(target) === `/connect/withdraw/${WITHDRAWAL}`;
    if (answer.body.includes('You have withdrawn')) {
      withdrawals++;
      expect([about, isWithdrawal]).toEqual([about, true]);
    }
  }
  // Nobody here has a cookie of ours: no answer of the service was taken, and what was withdrawn was by a whole link.
  expect(done).toEqual(Array.from({ length: withdrawals }, () => 'withdraw'));
  expect(lines.join('')).toBe('');
  expect([...seen]).toEqual(expect.arrayContaining([200, 400, 403, 404]));
});

/** The path as a router reads it. */
function decodes(target: string): string {
  const [path = ''] = target.split(/[?#;]/);
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
