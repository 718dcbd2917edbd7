import { defineConfig } from 'vitest/config';

/** Long campaigns, one after the other: `npm run campaign`. RINGNECK_CAMPAIGN_SEED and _ROUNDS choose which and how many. */
export default defineConfig({
  root: new URL('../..', import.meta.url).pathname,
  test: {
    globalSetup: ['test/support/memory.ts', 'test/support/build.ts'],
    setupFiles: ['test/support/each-file.ts'],
    include: ['test/campaign/**/*.test.ts'],
    testTimeout: 3_600_000,
    hookTimeout: 60_000,
    pool: 'forks',
    fileParallelism: false,
  },
});
