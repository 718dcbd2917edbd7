import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';
import { rowsOf, withDuckDB } from '../support/warehouse.ts';
import { placeExamples } from './warehouse-by-hand.ts';

const hasNotebook = spawnSync('python3', ['-c', 'import duckdb, matplotlib']).status === 0;
if (!hasNotebook && process.env.DEMAND_TOOLS === '1') {
  throw new Error('python3 with duckdb and matplotlib (pip install duckdb matplotlib) is not there, and DEMAND_TOOLS=1 demands it');
}

const examples = fileURLToPath(new URL('../../examples', import.meta.url));
const read = (name: string) => readFileSync(join(examples, name), 'utf8');
const data = join(tempFolder(), 'data');
const snapshot = join(data, 'snapshot.duckdb');

beforeAll(() => placeExamples(data));

const ask = (sql: string) => withDuckDB(snapshot, connection => rowsOf(connection, sql), { access_mode: 'READ_ONLY' });

/** Columns and types of a query, by which an empty answer is known, too. */
const columnsOf = async (sql: string) =>
  (await ask(`SELECT column_name FROM (DESCRIBE ${sql})`)).map(row => Object.values(row as object)[0]);

interface Cell {
  cell_type: 'code' | 'markdown';
  source: string[];
  outputs?: unknown[];
}

const notebook = (): { cells: Cell[]; nbformat: number } => JSON.parse(read('notebook/nights.ipynb'));
const codeCells = () => notebook().cells.filter(({ cell_type: type }) => type === 'code');

/** Runs the cells as Jupyter does, one after the other in one place; tells what came of them, and what was drawn. */
const RUN_CELLS = `
import json, sys
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
plt.show = lambda: None
here = {}
with open(sys.argv[1]) as file:
    cells = json.load(file)["cells"]
for cell in cells:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), "cell", "exec"), here)
figures = [plt.figure(number).axes[0] for number in plt.get_fignums()]
print(json.dumps({
    "person": here["person"], "newest": str(here["newest"]),
    "trend": {name: here["trend"][name].tolist() for name in ("value", "low", "high", "unusual")},
    "spans": [[stage, round(begins, 4), round(hours, 4)] for stage, begins, hours in here["spans"]],
    "weeks": here["weeks"],
    "drawn": [[line.get_label(), [None if y != y else y for y in line.get_ydata().astype(float).filled(float("nan")).tolist()]] for line in figures[0].lines],
    "bars": sum(len(bars.get_paths()) for bars in figures[1].collections),
    "points": [line.get_xydata().tolist() for line in figures[2].lines],
}))
`;

const nothing = (days: number) => Array<null>(days).fill(null);
const USUAL = [60, 62, 60, 62, 60, null, 62, 60, 62, 60, 62, 60, 62, 60, 62, 40];

test.skipIf(!hasNotebook)('the cells of the notebook give the trend with its band, the newest night and the weeks, and draw them', () => {
  const output = execFileSync('python3', ['-W', 'error', '-c', RUN_CELLS, join(examples, 'notebook/nights.ipynb')], {
    encoding: 'utf8',
    env: { ...process.env, RINGNECK_SNAPSHOT: snapshot },
  });
  expect(JSON.parse(output)).toEqual({
    person: 'ada',
    newest: '2025-03-16',
    trend: { value: USUAL, low: [...nothing(15), 61 - 1.4826], high: [...nothing(15), 61 + 1.4826], unusual: [...nothing(15), 40] },
    spans: [
      ['awake', 0, 0.0833],
      ['light', 0.0833, 0.0833],
      ['deep', 0.1667, 0.1667],
    ],
    weeks: [
      ['ada', 2, 61],
      ['ada', 0, 58],
    ],
    drawn: [
      ['HRV', USUAL],
      ['2 or more away', [...nothing(15), 40]],
    ],
    bars: 3,
    points: [
      [
        [2, 61],
        [0, 58],
      ],
    ],
  });
});

test('each query of the notebook runs, and its cells are kept without anybody’s results', async () => {
  const code = codeCells()
    .map(({ source }) => source.join(''))
    .join('\n');
  const queries = [...code.matchAll(/"""([^"]+)"""|"(SELECT [^"]+)"/g)].map(([, long, short]) => long ?? short ?? '');
  expect(queries).toHaveLength(6);
  for (const sql of queries) {
    expect(await ask(sql.replaceAll('$person', "'ada'").replaceAll('$newest', "DATE '2025-03-16'"))).not.toEqual([]);
  }
  expect(codeCells().flatMap(({ outputs = [] }) => outputs)).toEqual([]);
  expect(code).toContain('read_only=True');
});

/** The chunks of a document of knitr, with their options. */
const chunksOf = (text: string) =>
  [...text.matchAll(/^```\{(\w+)\}\n((?:#\| [^\n]*\n)*)(.*?)^```$/gms)].map(([, engine = '', head = '', code = '']) => ({
    engine,
    options: Object.fromEntries([...head.matchAll(/^#\| ([\w.-]+): (.*)$/gm)].map(([, name, value]) => [name, value])),
    code,
  }));

test('the queries of the Quarto document give who takes part, what is missing, and the weeks', async () => {
  const chunks = chunksOf(read('quarto/group.qmd'));
  const queries = chunks.filter(({ engine }) => engine === 'sql');
  expect(queries.map(({ options }) => [options.connection, options['output.var']])).toEqual([
    ['con', 'compliance'],
    ['con', 'missing'],
    ['con', 'weeks'],
  ]);
  const [compliance, missing, weeks] = await Promise.all(queries.map(({ code }) => ask(code)));
  expect(compliance).toEqual([
    { person: 'ada', first_day: '2025-03-01', last_day: '2025-03-16', days: 16, nights: 15, days_worn: 1 },
    { person: 'ben', first_day: '2025-03-15', last_day: '2025-03-16', days: 2, nights: 1, days_worn: 1 },
  ]);
  expect(missing).toEqual([
    {
      person: 'ben',
      collection: 'sleep',
      first_day: '2025-03-16',
      last_day: '2025-03-16',
      days: 1,
      state: 'failed',
      reason: 'the request was refused (400)',
    },
  ]);
  expect(weeks).toEqual([
    { person: 'ada', week: '2025-02-24', nights: 2, hrv: 61, hours_asleep: 7, stressful_days: null },
    { person: 'ada', week: '2025-03-03', nights: 6, hrv: 61, hours_asleep: 7, stressful_days: 2 },
    { person: 'ada', week: '2025-03-10', nights: 7, hrv: 58, hours_asleep: 7, stressful_days: 0 },
    { person: 'ben', week: '2025-03-10', nights: 1, hrv: 50, hours_asleep: 7, stressful_days: null },
  ]);
});

test('the R of the Quarto document asks nothing else, reads columns that its queries have, and opens the file read-only', async () => {
  const chunks = chunksOf(read('quarto/group.qmd'));
  const code = chunks
    .filter(({ engine }) => engine === 'r')
    .map(chunk => chunk.code)
    .join('\n');
  const [query, ...others] = [...code.matchAll(/dbGetQuery\(con, "([^"]+)"\)/g)].map(([, sql = '']) => sql);
  expect([others, await columnsOf(query ?? '')]).toEqual([[], ['taken_at']]);
  expect(code).toContain('read_only = TRUE');
  const weeks = chunks.find(({ options }) => options['output.var'] === 'weeks')?.code ?? '';
  // What R adds itself stands at the left of an arrow.
  const added = [...code.matchAll(/(?:weeks|known)\$(\w+) <-/g)].map(([, name]) => name);
  const used = [...code.matchAll(/(?:weeks|known)\$(\w+)/g)].map(([, name]) => name);
  const known = [...(await columnsOf(weeks)), ...added];
  expect(used.length).toBeGreaterThan(5);
  expect(used.filter(name => !known.includes(name))).toEqual([]);
  const balance = (open: string, close: string) => code.split(open).length - code.split(close).length;
  expect([balance('(', ')'), balance('{', '}'), balance('[', ']')]).toEqual([0, 0, 0]);
});

const page = read('evidence/pages/ring.md');
const sources = readdirSync(join(examples, 'evidence/sources/ring')).filter(name => name.endsWith('.sql'));
const pageQueries = new Map([...page.matchAll(/^```sql (\w+)\n(.*?)^```$/gms)].map(([, name = '', sql = '']) => [name, sql]));

/** As Evidence does it: takes over the result of each source as a table of numbers, texts and moments, and asks these alone. */
async function askPage(person: string): Promise<Map<string, { columns: string[]; rows: unknown[] }>> {
  return withDuckDB(':memory:', async connection => {
    await connection.run(`ATTACH '${snapshot}' AS snapshot (READ_ONLY); CREATE SCHEMA ring; USE snapshot`);
    for (const name of sources) {
      const sql = read(`evidence/sources/ring/${name}`);
      const described = (await connection.runAndReadAll(`DESCRIBE ${sql}`)).getRows();
      const columns = described.map(([column, type]) => `${column}::${storedAs(String(type))} AS ${column}`);
      await connection.run(`CREATE TABLE memory.ring.${name.replace('.sql', '')} AS SELECT ${columns.join(', ')} FROM (${sql})`);
    }
    await connection.run('USE memory');
    const answers = new Map<string, { columns: string[]; rows: unknown[] }>();
    for (const [name, sql] of pageQueries) {
      const filled = sql.replaceAll(/\$\{inputs\.person\.value\}/g, person);
      const columns = (await connection.runAndReadAll(`DESCRIBE ${filled}`)).getRows().map(([column]) => String(column));
      answers.set(name, { columns, rows: await rowsOf(connection, filled) });
    }
    return answers;
  });
}

function storedAs(type: string): string {
  if (/^(?:DATE|TIMESTAMP)/.test(type)) return 'TIMESTAMP';
  return ['VARCHAR', 'BOOLEAN'].includes(type) ? type : 'DOUBLE';
}

test('the Evidence page gives a person’s months, unusual nights, and everybody’s weeks', async () => {
  const answers = await askPage('ada');
  expect(answers.get('people')?.rows).toEqual([{ user_id: 'ada' }, { user_id: 'ben' }]);
  expect(answers.get('nights')?.rows).toHaveLength(16);
  expect(answers.get('nights')?.rows[5]).toMatchObject({ day: '2025-03-06 00:00:00', hours_asleep: null, hrv: null });
  expect(answers.get('months')?.rows).toEqual([
    { month: '2025-03-01 00:00:00', days: 16, nights_missing: 1, hours_asleep: 7, hrv: 894 / 15 },
  ]);
  expect(answers.get('unusual')?.rows).toEqual([{ day: '2025-03-16 00:00:00', what: 'average_hrv -14.2' }]);
  expect(answers.get('weeks')?.rows).toEqual([
    { user_id: 'ada', week: '2025-03-03 00:00:00', stressful_days: 2, hrv: 61 },
    { user_id: 'ada', week: '2025-03-10 00:00:00', stressful_days: 0, hrv: 58 },
  ]);
});

test('each component of the Evidence page shows a query of it, and columns that this query has', async () => {
  const answers = await askPage('ada');
  const components = [...page.matchAll(/^<(\w+) (.*)\/>$/gm)];
  expect(components.map(([, name]) => name)).toEqual(['Dropdown', 'LineChart', 'LineChart', 'DataTable', 'DataTable', 'ScatterPlot']);
  for (const [, , attributes = ''] of components) {
    const [, shown = ''] = /data=\{(\w+)\}/.exec(attributes) ?? [];
    const columns = [...attributes.matchAll(/\b(?:x|y|series|value)=(\w+)/g)].map(([, column]) => column);
    expect(answers.get(shown)?.columns).toEqual(expect.arrayContaining(columns));
  }
});

test('Evidence looks for the snapshot in the folder that its project lies in', () => {
  const [, filename = ''] = /^ {2}filename: (.*)$/m.exec(read('evidence/sources/ring/connection.yaml')) ?? [];
  expect(posix.join('ring/evidence/sources/ring', filename)).toBe('ring/data/snapshot.duckdb');
});

/** As Metabase fills in: a clause in [[ ]] is there where its variable has a value. */
const fillIn = (sql: string, values: Record<string, string>) =>
  sql
    .replaceAll(/\[\[(.*?)\]\]/gs, (_, clause: string) => (namesIn(clause).every(name => name in values) ? clause : ''))
    .replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => values[name] ?? `{{${name}}}`);
const namesIn = (sql: string) => [...new Set([...sql.matchAll(/\{\{(\w+)\}\}/g)].map(([, name = '']) => name))];

const march = "DATE '2025-03-10'";
const values = { person: "'ada'", metric: "'average_hrv'", first_day: march, last_day: "DATE '2025-03-12'" };

const metabase: Record<string, { values: Record<string, string>; rows: unknown[] }[]> = {
  'last-night.sql': [
    {
      values: {},
      rows: [
        {
          person: 'ada',
          day: '2025-03-16',
          asleep: '7:00',
          'HRV [ms]': 40,
          'usual HRV [ms]': 61,
          'away by [sd]': -14.2,
          'lowest heart rate [beats/min]': 47,
          'temperature [°C]': null,
        },
        {
          person: 'ben',
          day: '2025-03-15',
          asleep: '7:00',
          'HRV [ms]': 50,
          'usual HRV [ms]': null,
          'away by [sd]': null,
          'lowest heart rate [beats/min]': 47,
          'temperature [°C]': null,
        },
      ],
    },
  ],
  'trend.sql': [
    {
      values,
      rows: [
        { day: '2025-03-10', value: 60, low: null, high: null },
        { day: '2025-03-11', value: 62, low: null, high: null },
        { day: '2025-03-12', value: 60, low: null, high: null },
      ],
    },
    {
      values: { person: "'ben'", metric: "'average_hrv'" },
      rows: [
        { day: '2025-03-15', value: 50, low: null, high: null },
        { day: '2025-03-16', value: null, low: null, high: null },
      ],
    },
  ],
  'missing.sql': [
    {
      values: {},
      rows: [
        {
          person: 'ben',
          day: '2025-03-16',
          state: 'failed',
          reason: 'the request was refused (400)',
          'share of the day without the ring': 0,
        },
        {
          person: 'ada',
          day: '2025-03-06',
          state: 'empty',
          reason: 'the service has no night of this day',
          'share of the day without the ring': 0.5,
        },
      ],
    },
    { values: { person: "'ada'", first_day: march }, rows: [] },
  ],
  'stress.sql': [
    {
      values: {},
      rows: [
        { person: 'ada', 'stress of the day': 'normal', nights: 6, 'HRV [ms]': 61 },
        { person: 'ada', 'stress of the day': 'restored', nights: 1, 'HRV [ms]': 62 },
        { person: 'ada', 'stress of the day': 'stressful', nights: 2, 'HRV [ms]': 61 },
      ],
    },
  ],
};

test('there is an answer by hand for each query of Metabase', () => {
  expect(readdirSync(join(examples, 'metabase')).sort()).toEqual(Object.keys(metabase).sort());
});

test.each(Object.entries(metabase))('%s gives these rows in Metabase, with its variables and without', async (name, cases) => {
  const sql = read(`metabase/${name}`);
  for (const { values: given, rows } of cases) expect(await ask(fillIn(sql, given))).toEqual(rows);
  const [, listed = ''] = /^-- Variables: (.*)\.$/m.exec(sql) ?? [];
  expect([...listed.replaceAll(/\([^)]*\)/g, '').matchAll(/\b(?!and\b)\w+/g)].map(([word]) => word).sort()).toEqual(namesIn(sql).sort());
});
