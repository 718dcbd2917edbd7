import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { personAt } from '../support/sandbox-page.ts';
import { tempFolder } from '../support/temp-folder.ts';

const MINUTES = Number(process.env.RINGNECK_CAMPAIGN_MINUTES ?? 60);
const LIFE_S = 120;
const folder = tempFolder();

test(
  `tokens that live two minutes keep up reading for ${MINUTES} minutes, and nobody is parked`,
  async () => {
    const range = ['--people', '2', '--from', '2025-01-01', '--to', '2025-01-03', '--port', '0'];
    const service = startRingneck(['service', ...range, '--token-life', String(LIFE_S), '--json'], {
      env: { RINGNECK_DATA: `${folder}/service` },
    });
    const { url, client } = JSON.parse(await service.line());
    const env = {
      RINGNECK_DATA: `${folder}/data`,
      RINGNECK_SERVICE_URL: url,
      RINGNECK_CLIENT_ID: client.id,
      RINGNECK_CLIENT_SECRET: client.secret,
      RINGNECK_PORT: '0',
      RINGNECK_HEART_RATE_MINUTES: '1',
    };
    const up = startRingneck(['up'], { env });
    await up.said('"msg":"up"');
    for (const name of ['ada', 'ben']) {
      const login = await runHere(['account', 'login', name, '--no-browser'], { env, input: personAt(name) });
      expect(login).toMatchObject({ code: 0, stdout: `${name} active\n` });
    }
    for (let minute = 0; minute < MINUTES; minute++) {
      await sleep(60_000);
      const run = await runHere(['backfill', '--from', '2025-01-01', '--to', '2025-01-02', '--refresh', '--json'], { env });
      expect([minute, run.code, JSON.parse(run.stdout).failures]).toEqual([minute, 0, []]);
    }
    const accounts = JSON.parse((await runHere(['account', 'list', '--json'], { env })).stdout);
    expect(accounts.map(({ user_id, state }: Record<string, string>) => [user_id, state])).toEqual([
      ['ada', 'active'],
      ['ben', 'active'],
    ]);
    const renewals = up.stderr.match(/"msg":"the sign-in is renewed"/g)?.length ?? 0;
    expect(renewals).toBeGreaterThanOrEqual(2 * Math.floor((MINUTES * 60) / LIFE_S));
    expect(up.stderr.match(/"level":(40|50|60).*/g)).toBeNull();
    up.kill('SIGTERM');
    expect((await up.end()).code).toBe(0);
    service.kill('SIGTERM');
    await service.end();
  },
  (MINUTES + 10) * 60_000,
);
