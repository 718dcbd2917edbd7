import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parseAst } from 'vitest/node';

/** SQL over the ledger, over data, as files; and what the Postgres of a queue or of a lake is told. */
const MAY_HAVE_SQL = ['schema', 'src/ledger', 'src/warehouse', 'src/queue', 'src/machines'];

/** How a statement begins, on a line of its own or after the first parenthesis of one; a command of the shell does not begin with one. */
const STATEMENT = new RegExp(
  [
    'SELECT\\s+\\S',
    'WITH\\s+(RECURSIVE\\s+)?\\w+\\s+AS\\s*\\(',
    'FROM\\s+["\\w]',
    'INSERT\\s+(OR\\s+\\w+\\s+)?INTO\\s',
    'DELETE\\s+FROM\\s',
    'UPDATE\\s+["\\w.]+(\\s+(AS\\s+)?\\w+)?\\s+SET\\s',
    '(CREATE|DROP|ALTER|TRUNCATE)\\s+(OR\\s+REPLACE\\s+)?(TEMP\\w*\\s+)?(TABLE|VIEW|MACRO|INDEX|SCHEMA|SEQUENCE|TYPE|FUNCTION)\\s',
    'COPY\\s+\\S+\\s+(TO|FROM)\\s',
    'PIVOT\\s*[(\\w]',
    '(ATTACH|DETACH)\\s+["\'\\w]',
    'PRAGMA\\s+\\w',
    'CHECKPOINT\\b',
    'VACUUM\\b',
  ]
    .map(begin => `^\\s*\\(*\\s*${begin}`)
    .join('|'),
  'm',
);

interface Node {
  type: string;
  [key: string]: unknown;
}

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value;

/** The texts of a file; what a template has computed is a name. */
function* textsIn(value: unknown): Generator<string> {
  if (Array.isArray(value)) for (const item of value) yield* textsIn(item);
  else if (isNode(value)) {
    if (value.type === 'Literal' && typeof value.value === 'string') yield value.value;
    if (value.type === 'TemplateLiteral')
      yield (value.quasis as { value: { cooked: string } }[]).map(({ value: { cooked } }) => cooked).join('x');
    for (const child of Object.values(value)) yield* textsIn(child);
  }
}

function listSql(path: string, source: string): string[] {
  if (MAY_HAVE_SQL.some(place => path.startsWith(`${place}/`))) return [];
  return [...textsIn(parseAst(source, { lang: 'ts' }))]
    .filter(text => STATEMENT.test(text))
    .map(text => `${path}: ${text.trim().slice(0, 60)}`);
}

const root = fileURLToPath(new URL('..', import.meta.url));

test('SQL stands in the ledger, the warehouse, the schema, the queue and what machines have in common', () => {
  const files = ['schema', 'src', 'jobs'].flatMap(top =>
    readdirSync(join(root, top), { recursive: true, encoding: 'utf8' })
      .filter(file => file.endsWith('.ts'))
      .map(file => posix.join(top, file.replaceAll('\\', '/'))),
  );
  expect(files.length).toBeGreaterThan(20);
  expect(files.flatMap(path => listSql(path, readFileSync(join(root, path), 'utf8')))).toEqual([]);
});

test.each([
  "await warehouse.read('SELECT user_id FROM sync.accounts');",
  `warehouse.read(\`SELECT count(*) FROM \${table}\`);`,
  'read(`\n  WITH told AS (SELECT 1)\n  SELECT * FROM told`);',
  "const sql = 'FROM sync.drift';",
  "run('INSERT INTO sync.meta VALUES (1)');",
  "run('DELETE FROM sync.windows');",
  'run(`UPDATE sync.windows AS w SET read_at = NULL`);',
  "run('CREATE OR REPLACE VIEW nights AS x');",
  `run(\`ATTACH \${path} AS other\`);`,
  "run('PRAGMA database_size');",
  `run(\`PIVOT (\${inner}) ON user_id\`);`,
  'const part = `(SELECT 1)`;',
])('elsewhere it is found: %s', source => {
  expect(listSql('src/sync/a.ts', source)).toHaveLength(1);
  expect(listSql('src/ledger/a.ts', source)).toEqual([]);
});

test.each([
  `printLine('ringneck sql "SELECT * FROM sleep"');`,
  "const fix = 'update it, then select another file from the list';",
  "// SELECT 1 FROM sync.runs\nconst name = 'selected';",
])('what is none is let be: %s', source => {
  expect(listSql('src/sync/a.ts', source)).toEqual([]);
});
