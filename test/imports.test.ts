import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parseAst } from 'vitest/node';

const peers = ['src/client', 'src/sign-in', 'src/warehouse', 'src/queue', 'src/receiver', 'src/service', 'src/machines'];
const below = ['schema', 'src/base', ...peers];

// The architecture is these three tables.
const mayImport: Record<string, string[]> = {
  schema: ['schema'],
  'src/base': ['schema', 'src/base'],
  ...Object.fromEntries(peers.map(peer => [peer, ['schema', 'src/base', peer]])),
  'src/simulator': ['schema', 'src/base', 'src/service', 'src/simulator'],
  'src/ledger': [...below, 'src/ledger'],
  'src/sync': [...below, 'src/ledger', 'src/sync'],
  jobs: [...below, 'src/ledger', 'src/sync', 'jobs'],
  'src/app': [...below, 'src/simulator', 'src/ledger', 'src/sync', 'jobs', 'src/app'],
  'src/console': ['schema', 'src/base', 'src/app', 'src/console'],
  'src/mcp': ['schema', 'src/base', 'src/app', 'src/mcp'],
  'src/cli': [...below, 'src/simulator', 'src/ledger', 'src/sync', 'jobs', 'src/app', 'src/console', 'src/mcp', 'src/cli'],
};
/** What is loaded by a browser: of the console's own files the declarations of its routes alone, and their types. */
const inBrowser = { page: 'src/console/page/', mayImport: ['src/console/page/', 'src/console/api/', 'schema/'] };
const packagesOnlyIn: Record<string, string[]> = {
  '@modelcontextprotocol/': ['src/mcp'],
  bullmq: ['src/queue', 'jobs'],
  '@duckdb/': ['src/warehouse'],
  fastify: ['src/service', 'src/receiver', 'src/simulator', 'src/console'],
  'prom-client': ['src/console'],
  preact: ['src/console'],
  'preact-': ['src/console'],
  'd3-': ['src/console'],
  '@codemirror/': ['src/console'],
  '@lezer/': ['src/console'],
  '@fastify/swagger': ['src/service'],
  '@fastify/swagger-ui': ['src/service'],
  '@fastify/rate-limit': ['src/receiver'],
  commander: ['src/cli'],
  open: ['src/cli'],
  oauth4webapi: ['src/sign-in'],
  pg: ['src/machines'],
};
const packagesOf: Record<string, string[]> = { schema: ['zod'] };
/** Of the warehouse other rooms import what lies in front, some also its readers; what lies in front does not know DuckDB. */
const inWarehouse = {
  isFront: (path: string) => /^src\/warehouse\/[^/]+$/.test(path),
  isReader: (path: string) => path.startsWith('src/warehouse/readers/'),
  readersFor: ['src/app', 'src/cli'],
  duckdb: 'src/warehouse/store/duckdb.ts',
  /** What a store is, and who knows that it is one. A lake keeps others out of its folder by a file. */
  stores: {
    'src/warehouse/store/file/': [
      'src/warehouse/warehouse.ts',
      'src/warehouse/readers/open-reader.ts',
      'src/warehouse/readers/export/lock.ts',
      'src/warehouse/store/lake/',
    ],
    'src/warehouse/store/lake/': ['src/warehouse/warehouse.ts', 'src/warehouse/lake.ts', 'src/warehouse/readers/search.ts'],
  },
};
/** The one file that reads process.env, and who may import what it exports of it. */
const environmentIn = { file: 'src/base/config.ts', exportedAs: 'environment', onlyFor: ['src/app', 'src/cli'] };

/** Who writes to the terminal: the command line, and a process of its own that answers the one that started it. */
const writesIn = ['src/cli/', 'src/app/erase/search-child.ts'];

interface Node {
  type: string;
  [key: string]: unknown;
}

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value;

function* nodesIn(value: unknown): Generator<Node> {
  if (Array.isArray(value)) for (const item of value) yield* nodesIn(item);
  else if (isNode(value)) {
    yield value;
    for (const child of Object.values(value)) yield* nodesIn(child);
  }
}

const languageOf = (path: string) => (path.endsWith('x') ? 'tsx' : 'ts');

/** Everything that a node imports: undefined for no import, null for one whose name is computed. */
function importedBy(node: Node): string | null | undefined {
  const literal = (value: unknown) => {
    if (!isNode(value)) return null;
    if (value.type === 'TemplateLiteral' && (value.expressions as unknown[]).length === 0) {
      return (value.quasis as { value: { cooked: string } }[])[0]!.value.cooked;
    }
    return typeof value.value === 'string' ? value.value : null;
  };
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ImportExpression':
    case 'ExportAllDeclaration':
    case 'TSImportType':
      return literal(node.source);
    case 'ExportNamedDeclaration':
      return node.source ? literal(node.source) : undefined;
    case 'TSExternalModuleReference':
      return literal(node.expression);
    case 'CallExpression':
      return isNode(node.callee) && node.callee.name === 'require' ? literal((node.arguments as unknown[])[0]) : undefined;
    default:
      return undefined;
  }
}

const nameOf = (value: unknown): unknown => (isNode(value) ? (value.name ?? value.value) : undefined);

function readsEnvironment(node: Node): boolean {
  const isProcess = (value: unknown) => isNode(value) && nameOf(value.type === 'MemberExpression' ? value.property : value) === 'process';
  if (node.type === 'MemberExpression') return isProcess(node.object) && nameOf(node.property) === 'env';
  // const { env } = process
  return node.type === 'VariableDeclarator' && isProcess(node.init) && isNode(node.id) && node.id.type === 'ObjectPattern';
}

/** `process.stdout.write`, `process.stderr.write`, or anything of `console`. */
function writesToTerminal({ type, callee }: Node): boolean {
  if (type !== 'CallExpression' || !isNode(callee) || callee.type !== 'MemberExpression') return false;
  const { object, property } = callee;
  if (nameOf(object) === 'console') return true;
  return nameOf(property) === 'write' && isNode(object) && ['stdout', 'stderr'].includes(String(nameOf(object.property)));
}

/** The row of the table that a file belongs to. */
function zoneOf(path: string): string | undefined {
  const [top, second, ...rest] = path.split('/');
  if (top === undefined || second === undefined) return undefined;
  const zone = top === 'src' && rest.length > 0 ? `src/${second}` : top;
  return zone in mayImport ? zone : undefined;
}

/** What is wrong with one file: a sentence for each, that names the file, the import and the rule. */
function violations(path: string, source: string): string[] {
  const zone = zoneOf(path);
  if (zone === undefined) return [`${path}: the table in test/imports.test.ts has no row for its folder`];
  const wrong: string[] = [];
  for (const node of nodesIn(parseAst(source, { lang: languageOf(path) }))) {
    if (readsEnvironment(node) && path !== environmentIn.file) wrong.push(`${path} reads process.env: only ${environmentIn.file} may`);
    if (writesToTerminal(node) && !writesIn.some(place => path.startsWith(place))) wrong.push(`${path} prints: only src/cli may`);
    const imported = importedBy(node);
    if (imported === undefined) continue;
    if (imported === null) wrong.push(`${path} imports a computed name: this test cannot follow that`);
    else if (imported.startsWith('.')) wrong.push(...wrongFile(path, zone, posix.join(posix.dirname(path), imported), node));
    else wrong.push(...wrongPackage(path, zone, imported));
  }
  return wrong;
}

function wrongFile(path: string, zone: string, target: string, node: Node): string[] {
  const targetZone = zoneOf(target);
  const allowed = mayImport[zone]!;
  if (path.startsWith(inBrowser.page) && !inBrowser.mayImport.some(place => target.startsWith(place)))
    return [`${path} imports ${target}: what a browser loads may import only ${inBrowser.mayImport.join(', ')}`];
  if (targetZone === undefined || !allowed.includes(targetZone))
    return [`${path} imports ${target}: ${zone} may import only ${allowed.join(', ')}`];
  if (targetZone === 'src/warehouse' && !mayEnterWarehouse(path, zone, target)) return [`${path} imports ${target}: ${BEHIND_FRONT}`];
  const names = Array.isArray(node.specifiers)
    ? node.specifiers.map((specifier: Node) => nameOf(specifier.imported ?? specifier.local))
    : [];
  if (target !== environmentIn.file || environmentIn.onlyFor.includes(zone) || !names.includes(environmentIn.exportedAs)) return [];
  return [`${path} imports ${environmentIn.exportedAs} of ${target}: only ${environmentIn.onlyFor.join(', ')} may`];
}

const BEHIND_FRONT = 'it lies behind the front of src/warehouse, or behind its seam';

function mayEnterWarehouse(path: string, zone: string, target: string): boolean {
  if (zone === 'src/warehouse') {
    const [store, knownTo] = Object.entries(inWarehouse.stores).find(([folder]) => target.startsWith(folder)) ?? [];
    if (store && knownTo && !path.startsWith(store)) return knownTo.some(place => path.startsWith(place));
    return !inWarehouse.isFront(path) || target !== inWarehouse.duckdb;
  }
  return inWarehouse.isFront(target) || (inWarehouse.isReader(target) && inWarehouse.readersFor.includes(zone));
}

function wrongPackage(path: string, zone: string, imported: string): string[] {
  const own = packagesOf[zone];
  if (own && !own.includes(imported)) return [`${path} imports ${imported}: of packages ${zone} may import only ${own.join(', ')}`];
  if (/^(node:)?process$/.test(imported))
    return [`${path} imports ${imported}: process is there without, and its env is for ${environmentIn.file}`];
  for (const [name, zones] of Object.entries(packagesOnlyIn)) {
    const isOfIt = /[/-]$/.test(name) ? imported.startsWith(name) : imported === name || imported.startsWith(`${name}/`);
    if (isOfIt && !zones.includes(zone)) return [`${path} imports ${imported}: only ${zones.join(', ')} may`];
    if (name === '@duckdb/' && isOfIt && inWarehouse.isFront(path))
      return [`${path} imports ${imported}: the front of src/warehouse may not`];
  }
  return [];
}

const root = fileURLToPath(new URL('..', import.meta.url));

function listSources(): { path: string; source: string }[] {
  return ['schema', 'src', 'jobs'].flatMap(top =>
    readdirSync(join(root, top), { recursive: true, encoding: 'utf8' })
      .filter(file => /\.tsx?$/.test(file))
      .map(file => posix.join(top, file.replaceAll('\\', '/')))
      .map(path => ({ path, source: readFileSync(join(root, path), 'utf8') })),
  );
}

test('every file imports only what the architecture allows', () => {
  const files = listSources();
  expect(files.length).toBeGreaterThan(20);
  expect(files.flatMap(({ path, source }) => violations(path, source))).toEqual([]);
});

test('one file knows what the file of the warehouse is called', () => {
  const files = listSources().filter(({ source }) => /warehouse\\?\.duckdb/.test(source));
  expect(files.map(({ path }) => path)).toEqual(['src/base/warehouse-file.ts']);
});

/** Ways on which a file imports itself, each told once; `import type` counts. */
function circles(files: readonly { path: string; source: string }[]): string[] {
  const imports = new Map(
    files.map(({ path, source }) => {
      const targets = [...nodesIn(parseAst(source, { lang: languageOf(path) }))].map(importedBy).filter(target => target?.startsWith('.'));
      return [path, targets.map(target => posix.join(posix.dirname(path), target!))];
    }),
  );
  const found: string[] = [];
  const seen = new Set<string>();
  const visit = (path: string, way: readonly string[]): void => {
    const at = way.indexOf(path);
    if (at >= 0) found.push([...way.slice(at), path].join(' → '));
    if (at >= 0 || seen.has(path)) return;
    for (const target of imports.get(path) ?? []) visit(target, [...way, path]);
    seen.add(path);
  };
  for (const path of imports.keys()) visit(path, []);
  return found;
}

test('no file imports itself by way of others', () => {
  expect(circles(listSources())).toEqual([]);
  const files = [
    { path: 'jobs/a.ts', source: `import { b } from './b.ts';` },
    { path: 'jobs/b.ts', source: `const c = await import('../src/c.ts');` },
    { path: 'src/c.ts', source: `import type { A } from '../jobs/a.ts';` },
  ];
  expect(circles(files)).toEqual(['jobs/a.ts → jobs/b.ts → src/c.ts → jobs/a.ts']);
});

test.each([
  ['schema/resources/sleep.ts', `import { z } from 'zod'; import { sample } from '../fields.ts';`],
  ['src/base/files.ts', `import { micros } from '../../schema/instant.ts'; import { x } from './errors.ts'; import fs from 'node:fs';`],
  ['src/queue/open.ts', `import { Queue } from 'bullmq'; import { redis } from './redis.ts'; import type { Log } from '../base/log.ts';`],
  [
    'src/simulator/control-route.ts',
    `import { fastify } from 'fastify'; import { x } from '../service/state.ts'; import { y } from './users/life.ts';`,
  ],
  ['src/warehouse/store/open.ts', `import { DuckDBInstance } from '@duckdb/node-api';`],
  ['src/warehouse/warehouse.ts', `import { Writer } from './write/writer.ts';`],
  ['src/app/query/child.ts', `import { openQueries } from '../../warehouse/readers/query.ts';`],
  ['src/ledger/accounts.ts', `import type { Warehouse } from '../warehouse/warehouse.ts'; import { x } from '../client/client.ts';`],
  ['src/sync/collections.ts', `import { windowEntry } from '../ledger/windows.ts';`],
  ['jobs/collect-window.ts', `import type { Job } from 'bullmq'; import { x } from '../src/sync/collections.ts';`],
  ['src/app/app.ts', `import { x } from '../../jobs/collect-window.ts'; import { environment } from '../base/config.ts';`],
  ['src/cli/commands/up.ts', `import { Option } from 'commander'; import { App } from '../../app/app.ts';`],
  ['src/base/config.ts', `export const environment = process.env;`],
  [
    'src/base/log.ts',
    `// process.env and import 'bullmq' in a comment\nconst text = "import x from 'bullmq'; process.env"; process.stderr.isTTY;`,
  ],
])('%s may say: %s', (path, source) => {
  expect(violations(path, source)).toEqual([]);
});

const TO_QUEUE = 'src/client/a.ts imports src/queue/w.ts: src/client may import only schema, src/base, src/client';

test.each([
  [
    'schema/resources/sleep.ts',
    `import fs from 'node:fs';`,
    'schema/resources/sleep.ts imports node:fs: of packages schema may import only zod',
  ],
  ['schema/views/a.ts', `import '../../src/base/days.ts';`, 'schema/views/a.ts imports src/base/days.ts: schema may import only schema'],
  [
    'src/base/days.ts',
    `import { pages } from '../client/pages.ts';`,
    'src/base/days.ts imports src/client/pages.ts: src/base may import only schema, src/base',
  ],
  ['src/client/a.ts', `import type { W } from '../queue/w.ts';`, TO_QUEUE],
  ['src/client/a.ts', `export { w } from '../queue/w.ts';`, TO_QUEUE],
  ['src/client/a.ts', `export * from '../queue/w.ts';`, TO_QUEUE],
  ['src/client/a.ts', `const w = await import('../queue/w.ts');`, TO_QUEUE],
  ['src/client/a.ts', `let w: import('../queue/w.ts').W;`, TO_QUEUE],
  ['src/client/a.ts', `let w: typeof import('../queue/w.ts');`, TO_QUEUE],
  ['src/client/a.ts', `import w = require('bullmq');`, 'src/client/a.ts imports bullmq: only src/queue, jobs may'],
  ['src/client/a.ts', `const w = require('bullmq');`, 'src/client/a.ts imports bullmq: only src/queue, jobs may'],
  ['src/client/a.ts', 'const w = import(`bullmq`);', 'src/client/a.ts imports bullmq: only src/queue, jobs may'],
  [
    'src/client/a.ts',
    `import { x } from '../../test/support/x.ts';`,
    'src/client/a.ts imports test/support/x.ts: src/client may import only schema, src/base, src/client',
  ],
  ['src/app/app.ts', `process.stdout.write('a');`, 'src/app/app.ts prints: only src/cli may'],
  ['src/app/app.ts', `console.error('a');`, 'src/app/app.ts prints: only src/cli may'],
  ['src/client/a.ts', 'await import(name);', 'src/client/a.ts imports a computed name: this test cannot follow that'],
  [
    'src/service/a.ts',
    `import { life } from '../simulator/life.ts';`,
    'src/service/a.ts imports src/simulator/life.ts: src/service may import only schema, src/base, src/service',
  ],
  [
    'src/ledger/a.ts',
    `import type { Pipeline } from '../sync/pipeline.ts';`,
    'src/ledger/a.ts imports src/sync/pipeline.ts: src/ledger may import only schema, src/base, src/client, src/sign-in, src/warehouse, src/queue, src/receiver, src/service, src/machines, src/ledger',
  ],
  [
    'src/sync/a.ts',
    `import { collect } from '../../jobs/collect-window.ts';`,
    'src/sync/a.ts imports jobs/collect-window.ts: src/sync may import only schema, src/base, src/client, src/sign-in, src/warehouse, src/queue, src/receiver, src/service, src/machines, src/ledger, src/sync',
  ],
  [
    'jobs/collect-window.ts',
    `import { duckdb } from '@duckdb/node-bindings';`,
    'jobs/collect-window.ts imports @duckdb/node-bindings: only src/warehouse may',
  ],
  [
    'src/warehouse/warehouse.ts',
    `import type { DuckDBConnection } from '@duckdb/node-api';`,
    'src/warehouse/warehouse.ts imports @duckdb/node-api: the front of src/warehouse may not',
  ],
  [
    'src/warehouse/warehouse.ts',
    `import { duckdb } from './store/duckdb.ts';`,
    `src/warehouse/warehouse.ts imports src/warehouse/store/duckdb.ts: ${BEHIND_FRONT}`,
  ],
  [
    'src/warehouse/write/a.ts',
    `import { FileStore } from '../store/file/file-store.ts';`,
    `src/warehouse/write/a.ts imports src/warehouse/store/file/file-store.ts: ${BEHIND_FRONT}`,
  ],
  ['src/app/a.ts', `import { W } from '../warehouse/write/w.ts';`, `src/app/a.ts imports src/warehouse/write/w.ts: ${BEHIND_FRONT}`],
  [
    'src/sync/a.ts',
    `import type { R } from '../warehouse/readers/r.ts';`,
    `src/sync/a.ts imports src/warehouse/readers/r.ts: ${BEHIND_FRONT}`,
  ],
  [
    'src/app/a.ts',
    `import { print } from '../cli/terminal/print.ts';`,
    `src/app/a.ts imports src/cli/terminal/print.ts: src/app may import only ${mayImport['src/app']!.join(', ')}`,
  ],
  [
    'src/console/page/a.tsx',
    `const a = <p/>; import { Sessions } from '../server/sessions.ts';`,
    `src/console/page/a.tsx imports src/console/server/sessions.ts: what a browser loads may import only ${inBrowser.mayImport.join(', ')}`,
  ],
  ['src/app/a.ts', `import { Command } from 'commander';`, 'src/app/a.ts imports commander: only src/cli may'],
  [
    'src/cli/a.ts',
    `import fastify from 'fastify';`,
    'src/cli/a.ts imports fastify: only src/service, src/receiver, src/simulator, src/console may',
  ],
  ['src/cli/a.ts', `import ui from '@fastify/swagger-ui';`, 'src/cli/a.ts imports @fastify/swagger-ui: only src/service may'],
  ['src/cli/a.ts', 'process.env.HOME;', 'src/cli/a.ts reads process.env: only src/base/config.ts may'],
  ['src/cli/a.ts', `process['env'];`, 'src/cli/a.ts reads process.env: only src/base/config.ts may'],
  ['src/cli/a.ts', 'globalThis.process.env;', 'src/cli/a.ts reads process.env: only src/base/config.ts may'],
  ['src/cli/a.ts', 'const { env } = process;', 'src/cli/a.ts reads process.env: only src/base/config.ts may'],
  [
    'src/cli/a.ts',
    `import { env } from 'node:process';`,
    'src/cli/a.ts imports node:process: process is there without, and its env is for src/base/config.ts',
  ],
  [
    'src/queue/a.ts',
    `import { environment } from '../base/config.ts';`,
    'src/queue/a.ts imports environment of src/base/config.ts: only src/app, src/cli may',
  ],
  ['src/helpers/a.ts', '', 'src/helpers/a.ts: the table in test/imports.test.ts has no row for its folder'],
])('%s is refused: %s', (path, source, message) => {
  expect(violations(path, source)).toEqual([message]);
});
