import { defineConfig } from 'vitest/config';

/** Rooms whose tests start no other process and open no queue, but for three files: `npm run test:unit`. */
const rooms = ['base', 'client', 'ledger', 'receiver', 'schema', 'service', 'simulator'];
const startProcesses = ['test/base/access.test.ts', 'test/service/lock.test.ts', 'test/simulator/killed.test.ts'];

export default defineConfig({
  test: {
    globalSetup: ['test/support/build.ts'],
    // Limits for what hangs: a loaded machine must not reach them.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 30_000 } },
    pool: 'forks',
    maxWorkers: '100%',
    projects: [
      {
        extends: true,
        // What they import is loaded once for all of them, a third of their time: a helper among it calls `onTestFinished`, not `afterEach`.
        test: { name: 'unit', include: rooms.map(room => `test/${room}/**/*.test.ts`), exclude: startProcesses, isolate: false },
      },
      {
        extends: true,
        test: {
          name: 'whole',
          include: ['test/*.test.ts', `test/!(${[...rooms, 'campaign'].join('|')})/**/*.test.ts`, ...startProcesses],
        },
      },
    ],
  },
});
