import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { placePeople } from '../console/people-by-hand.ts';
import { startRingneck } from '../support/ringneck.ts';

test('console without up makes the snapshot that nobody has made yet, and shows who is followed', async () => {
  const data = await placePeople({ ann: {}, ben: {} });
  rmSync(join(data, 'snapshot.duckdb'));
  const running = startRingneck(['console', '--no-open'], { env: { RINGNECK_DATA: data, RINGNECK_CONSOLE_PORT: '0' } });
  const link = new URL(await running.line());
  expect(running.stderr).toContain('there is no snapshot yet: the first one is made');
  const headers = { origin: link.origin, 'content-type': 'application/json' };
  const entered = await fetch(`${link.origin}/api/enter`, { method: 'POST', headers, body: JSON.stringify({ code: link.hash.slice(1) }) });
  const [cookie = ''] = (entered.headers.get('set-cookie') ?? '').split(';');
  const answer = await fetch(`${link.origin}/api/people`, { headers: { cookie } });
  const people = (await answer.json()) as { everybody: number; first_run: unknown };
  expect([people.everybody, people.first_run]).toEqual([2, null]);
  running.kill('SIGINT');
  await running.end();
});
