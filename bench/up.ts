import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { killAtExit } from './child.ts';
import { environmentOf, MAIN } from './command.ts';
import type { Folder } from './folder.ts';
import { freePort } from './redis.ts';

/** An event that `up` has settled, as its log says it. */
export interface SettledLine {
  /** Milliseconds from its acceptance to its commit. */
  ms: number;
  outcome: string;
}

/** The real `ringneck up`, in a process of its own, with webhooks. */
export interface Up {
  callbackUrl: string;
  secret: string;
  /** Events settled so far. */
  settled: SettledLine[];
  /** Waits until so many are settled, or so long. */
  untilSettled(count: number, patienceMs: number): Promise<void>;
  /** What its process has cost so far: seconds, user and system. */
  cpu(): number;
  /** Starts a command that works through its control socket. */
  command(...args: string[]): ChildProcess;
  stop(): Promise<void>;
}

const SECRET = 'a-secret-of-the-benchmark';
const START_MS = 60_000;
const LOOK_EVERY_MS = 20;

/** Resolves once the subscriptions are there and the first sweep of heart rate is over. */
export async function startUp(folder: Folder): Promise<Up> {
  const port = await freePort();
  const callbackUrl = `http://127.0.0.1:${port}/webhook`;
  const env = {
    ...environmentOf(folder),
    RINGNECK_PORT: String(port),
    RINGNECK_CALLBACK_URL: callbackUrl,
    RINGNECK_CLIENT_ID: 'bench',
    RINGNECK_CLIENT_SECRET: SECRET,
    RINGNECK_VERIFICATION_TOKEN: 'a-word-of-the-benchmark',
    // It says of each event when it was settled.
    RINGNECK_LOG_LEVEL: 'debug',
    // Schedules keep still; what events make it do is measured with them.
    RINGNECK_SWEEP_HOURS: '168',
    RINGNECK_HEART_RATE_MINUTES: '1440',
    RINGNECK_NIGHTLY: '0 0 29 2 *',
  };
  const up = spawn(process.execPath, [MAIN, 'up'], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  killAtExit(up);
  const settled: SettledLine[] = [];
  const said = new Set<string>();
  const lines = createInterface({ input: up.stderr });
  lines.on('line', line => {
    if (!line.startsWith('{')) return void process.stderr.write(`ringneck up: ${line}\n`);
    const { msg, level, reason, ms, outcome } = JSON.parse(line) as SettledLine & { msg: string; level: number; reason?: string };
    if (msg === 'event settled') settled.push({ ms, outcome });
    else said.add(msg);
    if (level >= 40) process.stderr.write(`ringneck up: ${msg}${reason ? `: ${reason}` : ''}\n`);
  });
  const until = async (what: string, isSo: () => boolean, patienceMs: number) => {
    for (const end = Date.now() + patienceMs; !isSo(); ) {
      if (up.exitCode !== null || up.signalCode !== null) throw new Error(`ringneck up ended before ${what}`);
      if (Date.now() > end) return false;
      await sleep(LOOK_EVERY_MS);
    }
    return true;
  };
  for (const word of ['the subscriptions are kept', 'sweep run ended']) {
    if (!(await until(word, () => said.has(word), START_MS))) throw new Error(`ringneck up has not said “${word}”`);
  }
  return {
    callbackUrl,
    secret: SECRET,
    settled,
    untilSettled: async (count, patienceMs) => {
      await until(`${count} events were settled`, () => settled.length >= count, patienceMs);
    },
    cpu: () => cpuOf(up.pid!),
    command(...args) {
      const command = spawn(process.execPath, [MAIN, ...args], { env, stdio: 'ignore' });
      killAtExit(command);
      return command;
    },
    async stop() {
      if (up.exitCode !== null || up.signalCode !== null) return;
      up.kill('SIGTERM');
      await once(up, 'exit');
    },
  };
}

/** Linux tells it in hundredths of a second, after the name in brackets. */
function cpuOf(pid: number): number {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
    .slice(11, 13)
    .map(Number);
  return (user! + system!) / 100;
}
