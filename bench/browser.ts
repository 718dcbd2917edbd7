import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

/** A Chromium, where there is one. */
export const BROWSER = (process.env.PATH ?? '')
  .split(delimiter)
  .flatMap(folder => ['chromium', 'chromium-browser', 'google-chrome'].map(name => join(folder, name)))
  .find(path => existsSync(path));

/** Starts it with the lowest priority: on the cores of what is measured it stands for one on a machine of its own. */
export function browserStandingBack(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ringneck-bench-browser-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'browser');
  writeFileSync(path, `#!/bin/sh\nexec nice -n 19 '${BROWSER}' "$@"\n`, { mode: 0o755 });
  return path;
}
