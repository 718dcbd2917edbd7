import { expect, test } from 'vitest';
import type { AppCommands } from '../../src/app/commands.ts';
import { type Role, roles } from '../../src/console/api/route.ts';
import { routes } from '../../src/console/api/routes.ts';
import { openConsoleHere } from '../support/console-harness.ts';
import { placePeople, sleepOf } from './people-by-hand.ts';

const night = (day: string) => sleepOf(day, `${day}T00:30:00+01:00`, `${day}T08:30:00+01:00`, { total_sleep_duration: 25_000 });
const PEOPLE = { ann: { sleep: [night('2025-01-01')] }, ben: { sleep: [night('2025-01-01'), night('2025-01-02')] } };

/** What is asked of each route where there are parameters, of ben. */
const QUERIES: Readonly<Record<string, string>> = {
  'GET people/:id/trends': '?metrics=average_hrv&day=newest&days=2',
  'GET coverage': '?from=2025-01-01&to=2025-01-02',
  'GET coverage/cell': '?id=ben&day=2025-01-01',
};
const BODIES: Readonly<Record<string, object>> = {
  'POST sql': { sql: 'SELECT user_id FROM sleep' },
  'POST sql/export': { sql: 'SELECT user_id FROM sleep' },
};
const pathOf = (name: string) =>
  name
    .replace(':id', name.includes('people/') ? 'ben' : 'x')
    .replace(':day', '2025-01-02')
    .replace(':name', 'pause');

test('nobody asks a route that is not theirs, and each route says whose it is', async () => {
  const console = await openConsoleHere(await placePeople(PEOPLE), { now: () => Date.UTC(2025, 0, 2, 12) });
  for (const role of roles) {
    const visitor = await console.enter({ role, person: role === 'person' ? 'ann' : null });
    for (const [name, { role: least }] of Object.entries(routes) as [string, { role: Role | null }][]) {
      if (least === null) continue;
      const [method = ''] = name.split(' ');
      const { status, body } = await visitor.ask(pathOf(name), QUERIES[name], method === 'POST' ? (BODIES[name] ?? {}) : undefined);
      const told = `${role}, ${name}: ${status}`;
      if (roles.indexOf(role) < roles.indexOf(least)) {
        expect(status, told).toBe(403);
        expect(body.error, told).toEqual({ kind: 'forbidden', message: 'This session may not do that.', help: 'An operator may.' });
      } else expect(status, told).not.toBe(403);
      // Whatever a person asks, nothing of ben is in the answer but the name that they gave.
      if (role === 'person') {
        expect(JSON.stringify(body).replaceAll('Nobody is called ben', '').replaceAll('There is no account ben', ''), told).not.toContain(
          'ben',
        );
      }
      if (name === 'DELETE session') return;
    }
  }
});

test('who is new stays in while the snapshot does not have them yet, and is out once there is no such account', async () => {
  let accounts = [{ user_id: 'cleo' }];
  const commands = { listAccounts: async () => accounts, readHindrances: async () => ({}) } as unknown as AppCommands;
  const console = await openConsoleHere(await placePeople(PEOPLE), { commands });
  const cleo = await console.enter({ role: 'person', person: 'cleo' });
  expect(await cleo.ask('GET session')).toMatchObject({
    status: 503,
    body: { error: { kind: 'later', message: 'nothing of cleo is in the snapshot yet' } },
  });
  accounts = [];
  expect((await cleo.ask('GET session')).status).toBe(401);
});
