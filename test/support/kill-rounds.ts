import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { call } from '../../src/app/call.ts';
import { readSettings } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import type { Session } from '../../src/cli/session.ts';
import { type FaultService, startFaultService } from './fault-service.ts';
import { below, type Random, randomFrom } from './random-documents.ts';
import { ringneck, startRingneck } from './ringneck.ts';
import { startSandbox } from './sandbox.ts';
import { countRows, inspectFile } from './table-hash.ts';

const days = { from: '2025-03-01', to: '2025-03-14' };
export const KILLED_COMMAND = ['backfill', '--from', '2025-03-01', '--to', '2025-03-14', '--json'];

export interface KillSetting {
  folder: string;
  template: string;
  service: FaultService;
  settings(data: string, queueUrl?: string): Record<string, string>;
  /** Of an undisturbed run. */
  hashes: Record<string, string>;
  requests: number;
  close(): Promise<void>;
}

/** A service that takes a moment for each answer, a data folder with accounts, and what a run that nobody disturbs makes of it. */
export async function openKillSetting(folder: string): Promise<KillSetting> {
  const sandbox = await startSandbox({ count: 1, ...days, settings: { pageSize: 3, heartRatePageSize: 1_500 } });
  const service = await startFaultService({}, { upstream: sandbox.url });
  for (const path of ['/v2/usercollection/*', '/v2/usercollection/*/*']) service.on(path, async () => void (await sleep(8)) as undefined);
  const settings = (data: string, queueUrl?: string) => ({
    RINGNECK_DATA: data,
    RINGNECK_SERVICE_URL: service.url,
    RINGNECK_LOG_LEVEL: 'warn',
    ...(queueUrl === undefined ? {} : { RINGNECK_QUEUE_URL: queueUrl }),
  });
  const sessionOf = (data: string): Session => ({ settings: readSettings(settings(data)), log: silentLog });
  const template = join(folder, 'template');
  for (const { name, token } of sandbox.people) await call(sessionOf(template), 'addAccount', { name, token });
  const data = join(folder, 'undisturbed');
  cpSync(template, data, { recursive: true });
  const before = service.asked.length;
  const report = await call(sessionOf(data), 'backfill', { ...days, refresh: false, plan: false });
  expect(report).toMatchObject({ state: 'complete', failures: [] });
  const { hashes, broken } = await inspectFile(data);
  expect(broken).toEqual([]);
  const close = async () => {
    await service.close();
    await sandbox.close();
  };
  return { folder, template, service, settings, hashes, requests: service.asked.length - before, close };
}

let folders = 0;

interface Disturbance {
  /** Without one the queue is embedded. */
  queueUrl?: string | undefined;
  /** What else happens at the moment of a kill. */
  meanwhile?: () => Promise<void>;
}

/**
 * Kills a backfill once so many requests were sent, chosen by seed, and again after that, until the command comes to its end.
 * @returns how many of the kills met it with some rows and not yet all
 */
export async function killRound(
  { folder, template, service, settings, hashes, requests }: KillSetting,
  random: Random,
  { queueUrl, meanwhile }: Disturbance,
): Promise<number> {
  const data = join(folder, `round-${++folders}`);
  mkdirSync(folder, { recursive: true });
  cpSync(template, data, { recursive: true });
  const total = countRows(hashes);
  let counted = 0;
  for (let kills = 1 + below(random, 2); kills > 0; kills--) {
    const at = service.asked.length + 1 + below(random, Math.floor(requests * 0.9));
    const child = startRingneck(KILLED_COMMAND, { env: settings(data, queueUrl) });
    while (service.asked.length < at && child.process.exitCode === null) await sleep(1);
    await sleep(below(random, 12));
    child.kill('SIGKILL');
    await meanwhile?.();
    const { code } = await child.end();
    const { rows, broken } = await inspectFile(data);
    expect(broken).toEqual([]);
    if (code === 'SIGKILL' && rows > 0 && rows < total) counted++;
  }
  const ended = await ringneck(KILLED_COMMAND, { env: settings(data, queueUrl) });
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(ended.stdout)).toMatchObject({ state: 'complete', failures: [] });
  expect(await inspectFile(data)).toMatchObject({ hashes, broken: [] });
  return counted;
}

/** Rounds until so many kills counted. */
export async function killRounds(
  setting: KillSetting,
  { seed, kills, ...disturbance }: { seed: number; kills: number } & Disturbance,
): Promise<void> {
  const random = randomFrom(seed);
  let counted = 0;
  for (let round = 0; counted < kills; round++) {
    expect(round, `seed ${seed}: ${counted} of ${kills} kills counted`).toBeLessThan(4 * kills);
    counted += await killRound(setting, random, disturbance);
  }
}
