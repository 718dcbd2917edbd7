import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** A Chromium, where there is one. */
export const BROWSER = (process.env.PATH ?? '')
  .split(delimiter)
  .flatMap(folder => ['chromium', 'chromium-browser', 'google-chrome'].map(name => join(folder, name)))
  .find(path => existsSync(path));
