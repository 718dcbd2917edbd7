import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

const root = new URL('../..', import.meta.url).pathname;

/** The tests of the suite that have a short version there. */
const shortened = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.test.ts') && !name.startsWith('campaign/'))
  .map(name => join('test', name))
  .filter(path => readFileSync(join(root, path), 'utf8').includes('/support/whole.ts'));

/** Long campaigns, one after the other: `npm run campaign`. RINGNECK_CAMPAIGN_SEED and _ROUNDS choose which and how many. */
export default defineConfig({
  root,
  test: {
    globalSetup: ['test/support/memory.ts', 'test/support/build.ts'],
    setupFiles: ['test/support/each-file.ts'],
    include: ['test/campaign/**/*.test.ts', ...shortened],
    env: { WHOLE_TESTS: '1' },
    testTimeout: 3_600_000,
    hookTimeout: 60_000,
    pool: 'forks',
    fileParallelism: false,
  },
});
