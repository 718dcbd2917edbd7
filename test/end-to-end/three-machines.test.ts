import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { hasRedis, shareRedis } from '../queue/redis-server.ts';
import { hasBucket, hasLake, lakeSettings, newCatalogue, startBucket } from '../support/lake.ts';
import { MAIN } from '../support/ringneck.ts';
import { startSandbox } from '../support/sandbox.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const docs = readFileSync(new URL('../../docs/lake.md', import.meta.url), 'utf8');
const [making = '', ...others] = [...docs.matchAll(/```sh\n([^`]*)```/g)].map(([, block]) => block);
const typed = others.find(block => block?.includes('RINGNECK_DATA=')) ?? '';
const newQueue = shareRedis();

const WORKS = '"msg":"up"';

interface Told {
  shell: ChildProcess;
  /** On its standard error, so far. */
  said: string;
}

/** Puts what is there in the place of what the docs call it. */
function fill(block: string, places: Record<string, string>): string {
  let filled = block;
  for (const [name, place] of Object.entries(places)) {
    expect(filled).toContain(name);
    filled = filled.replaceAll(name, place);
  }
  return filled;
}

test.skipIf(!hasLake || !hasRedis)(
  'what the docs have one type on three machines makes a lake, and the two that wait go on when the first is killed',
  async () => {
    const folder = tempFolder();
    const [bin, etc] = [join(folder, 'bin'), join(folder, 'etc')];
    for (const path of [bin, etc]) mkdirSync(path, { mode: 0o700 });
    writeFileSync(join(bin, 'ringneck'), `#!/bin/sh\nexec '${process.execPath}' -- '${MAIN}' "$@"\n`);
    chmodSync(join(bin, 'ringneck'), 0o700);
    const sandbox = await startSandbox({ count: 1, from: '2025-03-04', to: '2025-03-06' });
    onTestFinished(() => sandbox.close());
    const s3 = hasBucket ? await startBucket(folder) : undefined;
    const { RINGNECK_WAREHOUSE, ...extensions } = lakeSettings(newCatalogue().catalogue, s3 ? 's3://ring/lake' : join(folder, 'files'));
    for (const [name, secret] of Object.entries({
      'lake.password': 'none is asked for',
      'lake.secret': s3?.secret ?? 'none',
      key: 'the key of all machines',
    })) {
      writeFileSync(join(etc, name), secret, { mode: 0o600 });
    }
    const lake = {
      'ducklake:postgres://ring@db.example/ring?data=s3://ring-study/lake': RINGNECK_WAREHOUSE,
      '/etc/ringneck': etc,
      'AKIA…': s3?.key ?? 'none',
    };
    const running: ChildProcess[] = [];
    onTestFinished(() => {
      for (const { pid } of running) if (pid !== undefined) kill(pid);
    });
    /** On a machine with a data folder of its own; the same service, and no console, whose port is the same for all. */
    const type = (script: string) => {
      const { PATH, TMPDIR } = process.env;
      const env = {
        ...{
          PATH: `${bin}:${PATH}`,
          HOME: folder,
          TMPDIR,
          RINGNECK_CONSOLE_PORT: 'off',
          RINGNECK_PORT: '0',
          RINGNECK_SERVICE_URL: sandbox.url,
        },
        ...extensions,
        ...(s3 ? { RINGNECK_LAKE_ENDPOINT: s3.endpoint } : {}),
      };
      const shell = spawn('bash', ['-c', `set -e\n${script}`], { env, detached: true });
      running.push(shell);
      const told = { shell, said: '' };
      shell.stderr.setEncoding('utf8').on('data', part => {
        told.said += part;
      });
      return told;
    };
    const run = async (script: string, input = '') => {
      const told = type(script);
      told.shell.stdin.end(input);
      const [stdout, [code]] = await Promise.all([text(told.shell.stdout), once(told.shell, 'exit')]);
      expect(code, told.said).toBe(0);
      return stdout;
    };
    const first = fill(making, lake);
    expect(first).toContain('\nringneck up\n');
    expect(await run(first.replace('\nringneck up\n', '\n'))).toContain('the lake is made');

    const { RINGNECK_QUEUE_URL: redis } = newQueue();
    const block = (name: string) => {
      const filled = fill(typed, { ...lake, '/srv/ringneck': join(folder, name), 'redis://redis.example': redis ?? '' });
      expect(filled).toContain('\nringneck up\n');
      return filled;
    };
    const on = (name: string, command: string, input?: string) => run(block(name).replace('\nringneck up\n', `\n${command}\n`), input);
    const a = type(block('first'));
    await saying([a], WORKS);
    const [b, c] = [type(block('second')), type(block('third'))];
    await saying([b, c], 'standby: ');
    expect(await on('first', 'ringneck account add ada', sandbox.people[0]!.token)).toBe('ada active\n');
    const machines = async (name: string) =>
      JSON.parse(await on(name, 'ringneck machines --json')) as { host: string; folder: string; state: string }[];
    const states = async (name: string) => Object.fromEntries((await machines(name)).map(one => [one.folder.split('/').at(-1), one.state]));
    expect(await states('third')).toEqual({ first: 'works', second: 'waits', third: 'waits' });
    expect((await machines('second')).map(({ host }) => host)).toEqual([hostname(), hostname(), hostname()]);

    kill(a.shell.pid!);
    await until('another one works', () => [b, c].some(({ said }) => said.includes('"msg":"up"')), 60_000);
    const next = b.said.includes('"msg":"up"') ? 'second' : 'third';
    expect(await states(next)).toMatchObject({ [next]: 'works' });
    expect(JSON.parse(await on(next, 'ringneck backfill --from 2025-03-04 --to 2025-03-05 --json'))).toMatchObject({ state: 'complete' });
    const waiting = next === 'second' ? 'third' : 'second';
    const asked = `ringneck sql --format csv "SELECT day FROM daily_sleep ORDER BY day"`;
    // On a slow machine each tells at first what its last snapshot has.
    await expect.poll(() => on(next, asked)).toContain('2025-03-05');
    await expect.poll(() => on(waiting, asked)).toBe(await on(next, asked));
  },
);

/** Waits until each of them has said a text. @throws where one ends before */
const saying = (all: readonly Told[], text: string) =>
  until(
    `all have said ${text}`,
    () =>
      all.every(({ shell, said }) => {
        if (shell.exitCode !== null) throw new Error(said);
        return said.includes(text);
      }),
    60_000,
  );

/** With what it has started. */
function kill(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
