import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { freePort } from '../queue/redis-server.ts';
import { MAIN } from '../support/ringneck.ts';
import { personAt } from '../support/sandbox-page.ts';
import { tempFolder } from '../support/temp-folder.ts';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

test.runIf(process.platform !== 'win32')('the sandbox walk of the README works as it is typed, in one empty folder', async () => {
  const walk = /```sh\n(umask 077\nnpx ringneck service [^`]*)```/.exec(readme)?.[1] ?? '';
  const folder = tempFolder();
  const [bin, place] = [join(folder, 'bin'), join(folder, 'place')];
  for (const path of [bin, place]) mkdirSync(path, { mode: 0o700 });
  // In place of the one that finds the command in a checkout.
  writeFileSync(join(bin, 'npx'), `#!/bin/sh\nshift\nexec '${process.execPath}' -- '${MAIN}' "$@"\n`);
  chmodSync(join(bin, 'npx'), 0o700);
  const script = `set -e\ntrap 'kill %1 2>/dev/null || true' EXIT\n${walk.replace('--port 4000', `--port ${await freePort()}`)}`;
  // Without a display the address is printed, and the answer pasted.
  const env = { PATH: `${bin}:${process.env.PATH}`, HOME: folder, TMPDIR: process.env.TMPDIR };
  const shell = spawn('bash', ['-c', script], { cwd: place, env });
  const said = { stderr: '' };
  shell.stderr.setEncoding('utf8').on('data', part => {
    said.stderr += part;
  });
  const printed = text(shell.stdout);
  shell.stdin.write(await personAt('ada')(said));
  const stdout = await printed;
  expect(stdout, said.stderr).toContain('ada active\n');
  const nights = stdout.split('\n').filter(line => /^2025-12-\d\d +\d+$/.test(line));
  expect(nights.length).toBeGreaterThan(5);
});
