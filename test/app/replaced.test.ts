import { cpSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, inject, test } from 'vitest';
import { startRingneck } from '../support/ringneck.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';

test('an up whose files were replaced since it started says to restart it', async () => {
  const folder = tempFolder();
  const program = join(folder, 'program');
  cpSync(inject('compiled'), program, { recursive: true });
  symlinkSync(fileURLToPath(new URL('../../node_modules', import.meta.url)), join(folder, 'node_modules'));
  const env = { RINGNECK_DATA: join(folder, 'data'), RINGNECK_SERVICE_URL: 'http://127.0.0.1:9', RINGNECK_PORT: '0' };
  const up = startRingneck(['up'], { env, main: join(program, 'src/cli/main.js') });
  await up.said('"msg":"up"');
  // As a build does: it removes the folder, and the names in the new one are others.
  for (const name of readdirSync(join(program, 'bundle'))) if (name !== 'ringneck.js') rmSync(join(program, 'bundle', name));
  expect(await runHere(['account', 'remove', 'ada', '--erase', '--yes'], { env })).toEqual({
    code: 75,
    stdout: '',
    stderr: `ringneck: the program of the process that owns ${env.RINGNECK_DATA} (PID ${up.process.pid}) was replaced since it started: restart \`ringneck up\`\n`,
  });
  up.kill('SIGTERM');
  await up.end();
});
