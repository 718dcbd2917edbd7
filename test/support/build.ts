import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = join(ROOT, 'node_modules/.cache');
const PREFIX = 'ringneck-compiled-';
const KEPT_MS = 24 * 3_600_000;
/** Beside the compiled program: a warehouse in which there is nothing yet. */
export const EMPTY_WAREHOUSE = 'empty.duckdb';
const MAKE_WAREHOUSE = `
  import { resources } from './schema/index.js';
  import { Warehouse } from './src/warehouse/warehouse.js';
  await (await Warehouse.open({ path: '${EMPTY_WAREHOUSE}', resources, now: () => Date.UTC(2025, 5, 1) })).close();`;

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the compiled program: tests that start it as a process take it from there. */
    compiled: string;
  }
}

/** Once for the whole suite: compiles the program, because Node 20 runs no TypeScript. */
export default function setup(project: TestProject): void {
  project.provide('compiled', compileProgram());
}

/** The compiled program of exactly these sources. Made beside and renamed, so that suites that run side by side share it. */
export function compileProgram(): string {
  const folder = join(CACHE, `${PREFIX}${hashSources()}`);
  if (existsSync(folder)) return folder;
  removeOld();
  const unfinished = `${folder}.${process.pid}.new`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', ROOT, '--outDir', unfinished, '--noCheck']);
  // Within node_modules no package.json further up counts.
  cpSync(join(ROOT, 'package.json'), join(unfinished, 'package.json'));
  for (const path of sourceFiles('schema')) if (/\.(sql|json)$/.test(path)) cpSync(join(ROOT, path), join(unfinished, path));
  copyQueueSnapshot(unfinished);
  execFileSync(process.execPath, [join(ROOT, 'scripts/build-page.mjs'), unfinished]);
  execFileSync(process.execPath, [join(ROOT, 'scripts/bundle.mjs'), unfinished]);
  execFileSync(process.execPath, ['--input-type=module', '--eval', MAKE_WAREHOUSE], { cwd: unfinished });
  try {
    renameSync(unfinished, folder);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

/** The empty database of the embedded queue takes four seconds to make: the build has made it. */
function copyQueueSnapshot(target: string): void {
  const built = join(ROOT, 'dist/src/queue');
  if (!existsSync(built)) return;
  for (const name of readdirSync(built)) if (name.endsWith('.tar.gz')) cpSync(join(built, name), join(target, 'src/queue', name));
}

function hashSources(): string {
  const hash = createHash('sha256');
  for (const path of ['schema', 'src', 'jobs']
    .flatMap(sourceFiles)
    .concat('package.json', 'tsconfig.json', 'scripts/bundle.mjs', 'scripts/build-page.mjs')
    .sort()) {
    hash.update(`${path}\n`).update(readFileSync(join(ROOT, path)));
  }
  return hash.digest('hex').slice(0, 16);
}

const sourceFiles = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(ROOT.length));

function removeOld(): void {
  mkdirSync(CACHE, { recursive: true });
  for (const name of readdirSync(CACHE)) {
    const path = join(CACHE, name);
    if (name.startsWith(PREFIX) && Date.now() - statSync(path).mtimeMs > KEPT_MS) rmSync(path, { recursive: true, force: true });
  }
}
