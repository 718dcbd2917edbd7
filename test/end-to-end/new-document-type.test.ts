import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, inject, test } from 'vitest';
import { call } from '../../src/app/call.ts';
import { readSettings } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import { freePort, shareRedis } from '../queue/redis-server.ts';
import { startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import type { SandboxProcess } from '../support/sandbox-process.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';
import { ask, findDifference, readCollection } from '../support/wire-reader.ts';

const FILE = `import { z } from 'zod';
import { choice, day, flag, identifier, instant, integer, numberBetween, objects, sample, text } from '../fields.ts';
import { resource } from '../resource.ts';

export const hydration = resource({
  path: 'Hydration',
  dataType: 'hydration',
  summary: 'What a person drank on a day.',
  scope: 'daily',
  specified: [],
  endDay: 'excluded',
  dayField: 'drunk_on',
  startsAt: 'first_drink',
  document: z.object({
    id: identifier('Identifier of the document'),
    balance: z.object({ lost: integer('Water lost by sweating', 'ml'), ratio: numberBetween(0, 2, 'Drunk by lost', 'ratio').nullish() }),
    drunk_on: day('Day of the drinks'),
    rounds: objects('Who paid for drinks', z.object({ paid_by: text('Who paid'), price: numberBetween(0, 9, 'Price', 'EUR').nullish() })),
    favourite: choice(['water', 'tea', 'coffee'], 'What was drunk most').nullish(),
    first_drink: instant('When the first glass was drunk'),
    goal_reached: flag('Whether it was enough'),
    volume: sample('Water drunk through the day', 'ml'),
  }),
});
`;
const LINE = `export { hydration } from './hydration.ts';\n`;

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCES = ['schema', 'src', 'jobs', 'scripts', 'docs', 'package.json', 'tsconfig.json'];
const PATH = '/v2/usercollection/Hydration';
const RANGE = { from: '2025-03-01', to: '2025-03-03' };

const folder = tempFolder();
const newQueue = shareRedis();
const copy = join(folder, 'ringneck');
const main = join(copy, 'dist/src/cli/main.js');
const inCopy = (...args: string[]) => execFileSync(process.execPath, args, { cwd: copy, stdio: 'pipe' });

/** Of every file of the copy that is no output of the compiler. */
function hashes(): Map<string, string> {
  const files = SOURCES.flatMap(name =>
    name.includes('.') ? [name] : readdirSync(join(copy, name), { recursive: true, encoding: 'utf8' }).map(path => join(name, path)),
  );
  const read = (path: string) =>
    createHash('sha256')
      .update(readFileSync(join(copy, path)))
      .digest('hex');
  return new Map(files.filter(path => /\.\w+$/.test(path)).map(path => [path, read(path)]));
}

/** Adds the file and the line, and does what `npm run generate` does: then all that is generated is true. */
function build(): void {
  for (const name of SOURCES) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const before = hashes();
  writeFileSync(join(copy, 'schema/resources/hydration.ts'), FILE);
  appendFileSync(join(copy, 'schema/resources/index.ts'), LINE);
  // The empty database of the queue takes seconds to make, and is the same.
  const [queue, ownQueue] = [join(inject('compiled'), 'src/queue'), join(copy, 'dist/src/queue')];
  mkdirSync(ownQueue, { recursive: true });
  for (const name of readdirSync(queue)) if (name.endsWith('.tar.gz')) cpSync(join(queue, name), join(ownQueue, name));
  // Several checkers look at what they have in common each by itself.
  inCopy('node_modules/typescript/bin/tsc', '--checkers', '1');
  inCopy('scripts/prepare.mjs');
  inCopy('dist/src/cli/generate.js');
  inCopy('dist/src/cli/generate.js', '--check');
  const changed = [...hashes()].filter(([path, hash]) => before.get(path) !== hash).map(([path]) => path);
  expect(changed.filter(path => !path.startsWith('docs/')).sort()).toEqual([
    ...['schema/resources/hydration.ts', 'schema/resources/index.ts'],
    'schema/warehouse.sql',
  ]);
}

beforeAll(build);

test('a document type that exists nowhere else takes one file and one line', async () => {
  for (const path of ['docs/data-dictionary.md', 'schema/warehouse.sql'])
    expect(readFileSync(join(copy, path), 'utf8')).toContain('Water drunk through the day');

  const service = startRingneck(
    ['service', '--people', '1', '--from', RANGE.from, '--to', RANGE.to, '--port', '0', '--json'].concat([
      '--allow-callback',
      '127.0.0.0/8',
      '--delivery-delay',
      '0',
      '--page-size',
      '2',
    ]),
    { main, env: { RINGNECK_DATA: join(folder, 'service'), ...newQueue() } },
  );
  const sandbox = JSON.parse(await service.line()) as SandboxProcess;
  const { name, token } = sandbox.people[0]!;
  const port = await freePort();
  const env = {
    ...newQueue(),
    RINGNECK_DATA: join(folder, 'data'),
    RINGNECK_SERVICE_URL: sandbox.url,
    RINGNECK_PORT: String(port),
    RINGNECK_CALLBACK_URL: `http://127.0.0.1:${port}/webhook`,
    RINGNECK_CLIENT_ID: sandbox.client.id,
    RINGNECK_CLIENT_SECRET: sandbox.client.secret,
    RINGNECK_VERIFICATION_TOKEN: 'a-word-of-ours',
  };
  const cli = async (...args: string[]) => {
    const ended = await runHere([...args, '--json'], { main, env, input: args[1] === 'add' ? token : '' });
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    return JSON.parse(ended.stdout);
  };
  const sql = async (statement: string) => {
    const { code, stdout, stderr } = await runHere(['sql', statement, '--format', 'json'], { main, env });
    expect(code, stderr).toBe(0);
    return JSON.parse(stdout);
  };
  const up = startRingneck(['up', '--events', '--mirror', '0'], { main, env });
  await up.said('"msg":"up"');
  const mirror = /"url":"([^"]+)","msg":"the mirror is served"/.exec(up.stderr)![1]!;
  await cli('account', 'add', name);
  expect(await cli('backfill', '--from', RANGE.from, '--to', RANGE.to)).toMatchObject({ state: 'complete', failures: [], rejected: 0 });

  const settings = readSettings(env);
  const isActive = ({ data_type, state }: { data_type: string; state: string }) => data_type === 'hydration' && state === 'active';
  const subscribed = async () => (await call({ settings, log: silentLog }, 'subscriptionsList', {})).filter(isActive);
  await until('it is subscribed to', async () => (await subscribed()).length === 3);
  await fetch(`${sandbox.control.url}/clock`, {
    method: 'POST',
    headers: { authorization: `Bearer ${sandbox.control.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ advance: 30 * 3600 }),
  });
  await until('the day after has come by an event', () => /create +hydration +\S+ +stored/.test(up.stdout));
  await cli('snapshot');

  const there = (await readCollection(sandbox.url, PATH, token, { start_date: RANGE.from, end_date: '2025-03-06' }))!;
  expect(there.map(({ drunk_on }) => drunk_on)).toEqual(['2025-03-01', '2025-03-02', '2025-03-03', '2025-03-04']);
  const mirrorToken = (await cli('account', 'mirror-token', name)).token as string;
  const here = await readCollection(mirror, PATH, mirrorToken, { start_date: RANGE.from, end_date: '2025-03-06' });
  expect(findDifference(there, here!)).toBeUndefined();
  const one = `${PATH}/${there[3]!.id}`;
  expect(findDifference([(await ask(sandbox.url, one, token)).body], [(await ask(mirror, one, mirrorToken)).body])).toBeUndefined();
  for (const url of [sandbox.url, mirror]) expect(Object.keys((await ask(url, '/openapi.json')).body.paths as object)).toContain(PATH);
  const items = there.flatMap(({ volume }) => (volume as { items: unknown[] }).items);
  expect(await sql('SELECT count(*) AS samples, count(DISTINCT day) AS days FROM hydration_volume')).toEqual([
    { samples: items.length, days: 4 },
  ]);

  const rounds = there.flatMap(document => document.rounds as { paid_by: string }[]);
  expect(await sql('SELECT day, paid_by FROM hydration_rounds ORDER BY day, position')).toEqual(
    there.flatMap(({ drunk_on: day, rounds }) => (rounds as { paid_by: string }[]).map(({ paid_by }) => ({ day, paid_by }))),
  );
  expect(await cli('describe', 'hydration.balance_lost')).toMatchObject({
    columns: [{ type: 'BIGINT', unit: 'ml', meaning: 'Water lost by sweating' }],
  });
  expect(await cli('coverage', '--resource', 'hydration', '--to', RANGE.to)).toMatchObject([
    { collection: 'hydration', ...RANGE, state: 'stored' },
  ]);
  const out = join(folder, 'out');
  const exported = await cli(
    'export',
    '--out',
    out,
    '--format',
    'csv',
    '--table',
    'hydration',
    '--table',
    'hydration_volume',
    '--table',
    'hydration_rounds',
  );
  expect(exported).toMatchObject({ rows: 4 + items.length + rounds.length });
  expect(readdirSync(out)).toEqual(expect.arrayContaining(['hydration', 'hydration_volume']));

  for (const process of [up, service]) {
    process.kill('SIGTERM');
    expect((await process.end()).code).toBe(0);
  }
});

test('a view is one file', async () => {
  const view = `-- after: nights
CREATE OR REPLACE VIEW drinks_before_nights AS
SELECT day, balance_lost AS lost, nights.efficiency, volume_count * 2 AS glasses FROM hydration JOIN nights ON nights.user_id = hydration.user_id AND day = drunk_on;
-- example of drinks_before_nights: SELECT lost FROM drinks_before_nights WHERE user_id = 'ada'
COMMENT ON VIEW drinks_before_nights IS 'What was drunk before a night';
COMMENT ON COLUMN drinks_before_nights.day IS 'The day';
COMMENT ON COLUMN drinks_before_nights.glasses IS 'Glasses [count]';
`;
  writeFileSync(join(copy, 'schema/views/drinks_before_nights.sql'), view);
  inCopy('scripts/prepare.mjs');
  inCopy('dist/src/cli/generate.js');
  const page = readFileSync(join(copy, 'docs/data-dictionary.md'), 'utf8');
  const [, section] = /### `drinks_before_nights`\n(.*?)\n### /s.exec(page)!;
  expect(section!.match(/^\| `.*/gm)).toEqual([
    '| `day` | DATE |  | The day |',
    '| `lost` | BIGINT | ml | Water lost by sweating |',
    '| `efficiency` | BIGINT | % | Share of time in bed spent asleep |',
    '| `glasses` | BIGINT | count | Glasses |',
  ]);
  expect(section).toContain("\nSELECT lost FROM drinks_before_nights WHERE user_id = 'ada';\n");
});
