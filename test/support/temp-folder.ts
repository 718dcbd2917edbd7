import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { killStarted } from './ringneck.ts';

/** A folder of its own, removed after the tests of the file. */
export function tempFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'ringneck-')));
  afterAll(async () => {
    await killStarted();
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}
