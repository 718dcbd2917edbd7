import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    globalSetup: ['test/support/build.ts'],
    include: ['test/**/*.test.ts'],
    exclude: ['test/campaign/**', 'node_modules/**'],
    // Limits for what hangs: a loaded machine must not reach them.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 30_000 } },
    pool: 'forks',
    maxWorkers: 2,
  },
});
