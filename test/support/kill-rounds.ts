import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { runCli, startCli } from './cli.ts';
import { type FaultService, startFaultService } from './fault-service.ts';
import { openHouse } from './house.ts';
import { below, type Random, randomFrom } from './random-documents.ts';
import { startSandbox } from './sandbox.ts';
import { countRows, inspectFile } from './table-hash.ts';

const days = { from: '2025-03-01', to: '2025-03-14' };
export const KILLED_COMMAND = ['backfill', '--from', '2025-03-01', '--to', '2025-03-14', '--json'];

export interface KillSetting {
  folder: string;
  template: string;
  service: FaultService;
  settings(data: string): Record<string, string>;
  /** Of an undisturbed run. */
  hashes: Record<string, string>;
  requests: number;
}

/** A service that takes a moment for each answer, a data folder with accounts, and what a run that nobody disturbs makes of it. */
export async function openKillSetting(folder: string, queueUrl?: string): Promise<KillSetting> {
  const sandbox = await startSandbox({ count: 1, ...days, settings: { pageSize: 3, heartRatePageSize: 1_500 } });
  onTestFinished(() => sandbox.close());
  const service = await startFaultService({}, { upstream: sandbox.url });
  onTestFinished(() => service.close());
  for (const path of ['/v2/usercollection/*', '/v2/usercollection/*/*']) service.on(path, async () => void (await sleep(8)) as undefined);
  const template = join(folder, 'template');
  const house = await openHouse(template, service.url);
  await house.add(sandbox.people);
  await house.close();
  const settings = (data: string) => ({
    RINGNECK_DATA: data,
    RINGNECK_SERVICE_URL: service.url,
    RINGNECK_LOG_LEVEL: 'warn',
    ...(queueUrl === undefined ? {} : { RINGNECK_QUEUE_URL: queueUrl }),
  });
  const data = join(folder, 'undisturbed');
  cpSync(template, data, { recursive: true });
  const before = service.asked.length;
  const ended = await runCli(KILLED_COMMAND, settings(data));
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  const { hashes, broken } = await inspectFile(data);
  expect(broken).toEqual([]);
  return { folder, template, service, settings, hashes, requests: service.asked.length - before };
}

let folders = 0;

/**
 * Kills a backfill once so many requests were sent, chosen by seed, and again after that, until the command comes to its end.
 * @param meanwhile what else happens at the moment of a kill
 * @returns how many of the kills met it with some rows and not yet all
 */
export async function killRound(
  { folder, template, service, settings, hashes, requests }: KillSetting,
  random: Random,
  meanwhile: () => Promise<void> = async () => {},
): Promise<number> {
  const data = join(folder, `round-${++folders}`);
  mkdirSync(folder, { recursive: true });
  cpSync(template, data, { recursive: true });
  const total = countRows(hashes);
  let counted = 0;
  for (let kills = 1 + below(random, 2); kills > 0; kills--) {
    const at = service.asked.length + 1 + below(random, Math.floor(requests * 0.9));
    const child = startCli(KILLED_COMMAND, settings(data));
    while (service.asked.length < at && child.process.exitCode === null) await sleep(1);
    await sleep(below(random, 12));
    child.process.kill('SIGKILL');
    await meanwhile();
    const { signal } = await child.ended;
    const { rows, broken } = await inspectFile(data);
    expect(broken).toEqual([]);
    if (signal === 'SIGKILL' && rows > 0 && rows < total) counted++;
  }
  const ended = await runCli(KILLED_COMMAND, settings(data));
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(ended.stdout)).toMatchObject({ state: 'complete', failures: [] });
  expect(await inspectFile(data)).toMatchObject({ hashes, broken: [] });
  return counted;
}

/** Rounds until so many kills counted. */
export async function killRounds(
  setting: KillSetting,
  { seed, kills }: { seed: number; kills: number },
  meanwhile?: () => Promise<void>,
): Promise<void> {
  const random = randomFrom(seed);
  let counted = 0;
  for (let round = 0; counted < kills; round++) {
    expect(round, `seed ${seed}: ${counted} of ${kills} kills counted`).toBeLessThan(4 * kills);
    counted += await killRound(setting, random, meanwhile);
  }
}
