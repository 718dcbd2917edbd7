import { execFile as execFileWithCallback } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { createLog, silentLog } from '../../src/base/log.ts';

const execFile = promisify(execFileWithCallback);

function written(pretty: boolean, level = 'info') {
  const lines: string[] = [];
  return { lines, log: createLog({ level, pretty, stream: { write: line => void lines.push(line) } }) };
}

test('JSON lines, from the level on', () => {
  const { lines, log } = written(false, 'warn');
  log.info('not this');
  log.warn({ user_id: 'anna' }, 'parked');
  expect(lines.map(line => JSON.parse(line))).toEqual([expect.objectContaining({ level: 40, user_id: 'anna', msg: 'parked' })]);
});

test('readable lines for a person', () => {
  const { lines, log } = written(true);
  log.info({ windows: 3 }, 'planned');
  expect(lines.join('')).toMatch(/^\[\d\d:\d\d:\d\d\] INFO: planned\n {4}windows: 3\n$/);
});

test.each([false, true])('no secret gets through, at any depth that occurs (pretty %s)', pretty => {
  const { lines, log } = written(pretty);
  log.info({ token: 'hidden', headers: { authorization: 'Bearer hidden', 'set-cookie': 'hidden' } });
  log.info({
    request: { options: { headers: { Authorization: 'hidden' } } },
    accounts: [{ token: 'hidden' }],
    settings: { secretKey: 'hidden' },
  });
  log.error(Object.assign(new Error('refused'), { client: { secret: 'hidden', password: 'hidden' } }));
  log.child({ access_token: 'hidden' }).info('from a child');
  expect(lines.join('')).not.toContain('hidden');
  expect(lines.join('').match(/redacted/g)).toHaveLength(9);
});

test('the silent log says nothing at any level', () => {
  expect(silentLog.isLevelEnabled('fatal')).toBe(false);
});

/** Compiles the log into a folder beside a program that uses it. */
async function compileProgram(program: string): Promise<{ path: string; remove(): void }> {
  const folder = mkdtempSync(join(tmpdir(), 'ringneck-test-'));
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const options = [
    '--ignoreConfig',
    '--module',
    'nodenext',
    '--target',
    'es2023',
    '--types',
    'node',
    '--skipLibCheck',
    '--rewriteRelativeImportExtensions',
  ];
  await execFile('node', ['node_modules/typescript/bin/tsc', 'src/base/log.ts', ...options, '--outDir', folder], { cwd: root });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  const path = join(folder, 'program.js');
  writeFileSync(path, program);
  return { path, remove: () => rmSync(folder, { recursive: true }) };
}

test.each([false, true])('every line is on stderr before a process ends at once, and nothing on stdout (pretty %s)', async pretty => {
  const program = await compileProgram(
    `import { createLog } from './log.js';
     const log = createLog({ level: 'info', pretty: ${pretty} });
     for (let i = 1; i <= 500; i++) log.info('line %d', i);
     process.kill(process.pid, 'SIGKILL');`,
  );
  try {
    const ended = await execFile('node', [program.path]).catch((error: { stdout: string; stderr: string }) => error);
    expect(ended.stdout).toBe('');
    expect(ended.stderr.match(/line \d+/g)).toEqual(Array.from({ length: 500 }, (_, index) => `line ${index + 1}`));
  } finally {
    program.remove();
  }
});

test.runIf(existsSync('/dev/full'))('a disk that takes no line of the log ends nobody', async () => {
  const program = await compileProgram(
    `import { createLog } from './log.js';
     const log = createLog({ level: 'info', pretty: false });
     for (let i = 1; i <= 20_000; i++) log.info('line %d of many, each of which waits for room that does not come', i);
     console.log('goes on');`,
  );
  try {
    expect((await execFile('sh', ['-c', 'exec node "$0" 2> /dev/full', program.path])).stdout).toBe('goes on\n');
  } finally {
    program.remove();
  }
});
