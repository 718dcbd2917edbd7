import { join } from 'node:path';
import stringWidth from 'string-width';
import { beforeAll, expect, test } from 'vitest';
import { resources } from '../../schema/index.ts';
import { serveControl } from '../../src/app/control/serve-control.ts';
import { UsageError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import { findEntry, formatCatalogue, formatEntry } from '../../src/cli/terminal/catalogue.ts';
import { type Catalogue, declareCatalogue, readCatalogue } from '../../src/warehouse/readers/catalogue.ts';
import { openHarness } from '../support/harness.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { openWarehouse, store, withDuckDB } from '../support/warehouse.ts';
import { ACTIVITY, STRESS } from '../support/wire.ts';

const folder = tempFolder();
const data = join(folder, 'data');
const env = { RINGNECK_DATA: data };
let declared: Catalogue;
beforeAll(async () => {
  const warehouse = await openWarehouse(join(data, 'warehouse.duckdb'));
  await store(warehouse, 'daily_stress', [STRESS]);
  await store(warehouse, 'daily_activity', [ACTIVITY]);
  await warehouse.close();
  declared = await declareCatalogue(resources);
});

const JSON_OF = ({ stdout }: { stdout: string }) => JSON.parse(stdout);

test('tables tells of each table how many rows it has', async () => {
  const listed = JSON_OF(await runHere(['tables', '--all', '--json'], { env }));
  const of = (name: string) => listed.find((entry: { name: string }) => entry.name === name);
  expect(of('daily_activity_met')).toEqual({
    name: 'daily_activity_met',
    kind: 'table',
    group: 'series',
    rows: 4,
    meaning: 'met of daily_activity, one row for each sample',
    paragraph: '2.1',
  });
  expect([of('daily_stress').rows, of('sleep').rows, of('local').kind, of('sync.runs').group]).toEqual([1, 0, 'macro', 'ledger']);
});

test('in a pipe each table is one line, documents in the order of the specification', async () => {
  const { code, stdout, stderr } = await runHere(['tables'], { env });
  expect([code, stderr]).toEqual([0, '']);
  const lines = stdout.trimEnd().split('\n');
  expect(stdout).not.toContain('sync.runs');
  const documents = lines.map(line => line.split(/ {2,}/)).filter(([, , group]) => group === 'documents');
  expect(documents.map(([name]) => name)).toEqual([...resources.map(({ name }) => name), 'personal_info']);
  expect(documents.find(([name]) => name === 'daily_stress')).toEqual([
    'daily_stress',
    'table',
    'documents',
    '1',
    'Stress and recovery while awake',
  ]);
});

test('describe explains each column', async () => {
  expect(await runHere(['describe', 'VO2_Max'], { env })).toEqual({
    code: 0,
    stderr: '',
    stdout: `vo2_max: table, 0 rows
Estimated maximal oxygen uptake.
Specification: 2.7

column            type       unit                 meaning
user_id           VARCHAR                         The account, as named by \`account add\`
id                VARCHAR                         Identifier of the document
day               DATE                            Day the estimate belongs to
timestamp         TIMESTAMP                       When the estimate was created, UTC
timestamp_offset  INTEGER    seconds east of UTC  Offset of timestamp
vo2_max           BIGINT     ml/kg/min            Maximal oxygen uptake
extra             JSON                            Fields that came but have no column, or did not fit their column
sk                BIGINT                          Number of this stored version; joins the series tables
fetched_at        TIMESTAMP                       When the request that brought this version was sent, UTC
content_hash      VARCHAR                         Hash of what arrived

Try:
  SELECT day, vo2_max FROM vo2_max WHERE user_id = 'ada' ORDER BY day DESC LIMIT 7
`,
  });
});

test('describe explains one column alone', async () => {
  const shown = `vo2_max: table, 0 rows
Estimated maximal oxygen uptake.
Specification: 2.7

column   type    unit       meaning
vo2_max  BIGINT  ml/kg/min  Maximal oxygen uptake
`;
  expect(await runHere(['describe', 'VO2_Max.vo2_MAX'], { env })).toEqual({ code: 0, stderr: '', stdout: shown });
  expect(JSON_OF(await runHere(['describe', 'main."vo2_max".vo2_max', '--json'], { env }))).toMatchObject({
    name: 'vo2_max',
    columns: [{ name: 'vo2_max', type: 'BIGINT', unit: 'ml/kg/min', meaning: 'Maximal oxygen uptake' }],
    example: null,
  });
  expect(findEntry(declared, 'runs.state').columns.map(({ name }) => name)).toEqual(['state']);
});

test('describe shows how a macro is called, and its SQL', async () => {
  expect(formatEntry(findEntry(declared, 'local'))).toMatch(/^local\(ts, utc_offset\): macro\n/);
  expect((await runHere(['describe', 'local', '--sql'], { env })).stdout).toMatch(
    /^CREATE OR REPLACE MACRO local\(ts, utc_offset\) AS\s.*;\n$/s,
  );
});

test('describe --json tells of joins, and the example asks for somebody who is there', async () => {
  const path = join(folder, 'named', 'warehouse.duckdb');
  const warehouse = await openWarehouse(path);
  await warehouse.close();
  await withDuckDB(path, connection =>
    connection.run(`INSERT INTO sync.accounts (user_id, state) VALUES ('zoe', 'active'), ('o''neil', 'active')`),
  );
  const described = JSON_OF(await runHere(['describe', 'sleep_hrv', '--json'], { env: { RINGNECK_DATA: join(folder, 'named') } }));
  expect(described.joins).toEqual([
    {
      ...{ from: 'sleep', to: 'sleep_hrv', on: 'USING (user_id, day, sk)', many: true, label: 'sk' },
      ...{ meaning: 'the samples of hrv', back: 'the document of these samples' },
    },
  ]);
  expect(described.example).toBe(`SELECT ts, value FROM sleep_hrv WHERE user_id = 'o''neil' ORDER BY ts DESC LIMIT 7`);
  expect(described.columns.at(-1)).toEqual({
    name: 'value',
    type: 'DOUBLE',
    unit: 'ms',
    meaning: 'Heart rate variability during the sleep, rMSSD; null where the service had no value',
  });
});

test('describe suggests what was probably meant', async () => {
  const line = 'there is no table, view or macro "slep": did you mean sleep?';
  expect(await runHere(['describe', 'slep'], { env })).toEqual({ code: 2, stdout: '', stderr: `ringneck: ${line}\n` });
});

test.each([
  ['nothing_of_the_kind', 'there is no table, view or macro "nothing_of_the_kind": `ringneck tables` lists them'],
  ['sleep.average_hvr', 'sleep has no column "average_hvr": did you mean sleep.average_hrv?'],
  ['windows.nothing_of_the_kind', 'sync.windows has no column "nothing_of_the_kind": ringneck describe sync.windows lists them'],
  ['slep.score', 'there is no table, view or macro "slep.score": `ringneck tables` lists them'],
  ['MET_INTERVAL', 'MET_INTERVAL is a column of daily_activity: ringneck describe daily_activity'],
])('describe %s: no such table', (name, line) => {
  expect(() => findEntry(declared, name)).toThrow(new UsageError(line));
});

test.each([
  ['main.SLEEP', 'sleep'],
  ['windows', 'sync.windows'],
  ['local(ts, utc_offset)', 'local'],
])('describe %s finds %s', (name, found) => {
  expect(findEntry(declared, name).name).toBe(found);
});

test('before there is a warehouse tables tells what it will hold', async () => {
  const nowhere = { env: { RINGNECK_DATA: join(folder, 'nowhere') } };
  const { code, stdout, stderr } = await runHere(['tables', '--json'], nowhere);
  expect([code, stderr]).toEqual([0, `there is no warehouse in ${join(folder, 'nowhere')} yet: this is what it will hold\n`]);
  expect(JSON.parse(stdout).find(({ name }: { name: string }) => name === 'sleep').rows).toBe(null);
  expect(formatEntry(findEntry(declared, 'sleep'))).toMatch(/^sleep: table\n/);
});

test('a terminal of 80 columns shows all of it without a line too long', () => {
  const pages = [
    formatCatalogue(declared, { ledger: true, width: 80 }),
    ...declared.entries.map(entry => formatEntry(entry, { width: 80 })),
  ];
  const lines = pages.flatMap(page => page.split('\n'));
  expect(lines.length).toBeGreaterThan(300);
  // A join is to be copied as it is.
  expect(lines.filter(line => stringWidth(line) > 80 && !line.startsWith('JOIN '))).toEqual([]);
});

test('while somebody owns the warehouse its snapshot is read', async () => {
  const harness = await openHarness(join(folder, 'owned'), 'http://127.0.0.1:1');
  await store(harness.app.warehouse, 'daily_stress', [STRESS]);
  const control = await serveControl({ folder: join(folder, 'owned'), commands: harness.commands, log: silentLog });
  try {
    const { code, stdout } = await runHere(['tables', '--json'], { env: { RINGNECK_DATA: join(folder, 'owned') } });
    expect([code, JSON.parse(stdout).find(({ name }: { name: string }) => name === 'daily_stress').rows]).toEqual([0, 1]);
  } finally {
    await control.close();
  }
});

test('what somebody else made in the file is listed last: a view whose table is gone, control characters', async () => {
  const path = join(folder, 'strange', 'warehouse.duckdb');
  const warehouse = await openWarehouse(path);
  await warehouse.close();
  await withDuckDB(path, async connection => {
    await connection.run(
      'CREATE TABLE "my.notes" (text VARCHAR); CREATE TABLE gone (a INTEGER); CREATE VIEW lost AS FROM gone; DROP TABLE gone',
    );
    await connection.run(`COMMENT ON TABLE "my.notes" IS 'red \u001b[31m alert'`);
  });
  const catalogue = await readCatalogue(path, resources);
  expect(catalogue.entries.slice(-2).map(({ name, kind, group }) => [name, kind, group])).toEqual([
    ['lost', 'view', 'other'],
    ['my.notes', 'table', 'other'],
  ]);
  const shown = [formatCatalogue(catalogue), formatCatalogue(catalogue, { width: 80 }), formatEntry(findEntry(catalogue, 'my.notes'))];
  expect(shown.map(text => [text.includes('red \\u001b[31m alert'), text.includes('\u001b')])).toEqual([
    [true, false],
    [true, false],
    [true, false],
  ]);
});

test('a table of somebody else with brackets and the like in its name breaks neither tables nor describe', async () => {
  const other = { RINGNECK_DATA: join(folder, 'odd-names') };
  const path = join(other.RINGNECK_DATA, 'warehouse.duckdb');
  await (await openWarehouse(path)).close();
  await withDuckDB(path, async connection => {
    await connection.run('CREATE TABLE "coffee (cups" (day DATE, cups INT)');
    await connection.run('CREATE VIEW "a|b[*+?^$\\." AS SELECT 1 AS one');
  });
  const listed = JSON_OF(await runHere(['tables', '--all', '--json'], { env: other })) as { name: string; group: string }[];
  expect(listed.filter(({ group }) => group === 'other').map(({ name }) => name)).toEqual(['a|b[*+?^$\\.', 'coffee (cups']);
  expect(await runHere(['describe', 'coffee (cups'], { env: other })).toMatchObject({ code: 0, stdout: expect.stringContaining('cups') });
  expect(await runHere(['describe', 'daily'], { env: other })).toMatchObject({ code: 0, stdout: expect.stringMatching(/^daily: view/) });
});
