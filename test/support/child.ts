import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface Child {
  process: ChildProcess;
  pid: number;
  /** The next line of its standard output; rejects when it ends first. */
  line(): Promise<string>;
  /** Resolves with what it ended by. */
  ended: Promise<number | NodeJS.Signals | null>;
}

/** Runs a script by Node itself, in a process of its own. */
export function startChild(script: string, ...parameters: string[]): Child {
  const child = spawn(process.execPath, [script, ...parameters], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    process: child,
    pid: child.pid!,
    async line() {
      const next = await lines.next();
      if (next.done) throw new Error(`${script} ended before it said a word`);
      return next.value;
    },
    ended: new Promise(resolve => child.once('close', (code, signal) => resolve(signal ?? code))),
  };
}

export const childScript = fileURLToPath(new URL('child.mjs', import.meta.url));

/** Compiles the warehouse, because Node 20 runs no TypeScript, and returns the folder. To be removed. */
export function compileWarehouse(): string {
  const folder = join(ROOT, `node_modules/.cache/ringneck-test-${process.pid}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  // Within node_modules no package.json further up counts.
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', version }));
  const sources = ['src/warehouse/warehouse.ts', 'schema/index.ts'].map(path => join(ROOT, path));
  const options =
    '--ignoreConfig --module nodenext --target es2023 --lib es2023,es2024.string --types node --rewriteRelativeImportExtensions --skipLibCheck --noCheck';
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [compiler, ...options.split(' '), '--rootDir', ROOT, '--outDir', folder, ...sources]);
  cpSync(join(ROOT, 'schema/views'), join(folder, 'schema/views'), { recursive: true });
  return folder;
}
