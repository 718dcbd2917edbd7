import { defineConfig } from 'vitest/config';

/** Rooms whose tests start no other process and open no queue, but for three files: `npm run test:unit`. */
const rooms = ['base', 'client', 'ledger', 'receiver', 'schema', 'service', 'simulator'];
const startProcesses = ['test/base/access.test.ts', 'test/service/lock.test.ts', 'test/simulator/killed.test.ts'];

export default defineConfig({
  test: {
    globalSetup: ['test/support/memory.ts', 'test/support/build.ts'],
    setupFiles: ['test/support/each-file.ts'],
    // What files import is loaded once by each worker, a third of their time: a helper among it has hooks inside of functions alone.
    isolate: false,
    // Limits for what hangs: a loaded machine must not reach them.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 30_000 } },
    pool: 'forks',
    maxWorkers: '100%',
    projects: [
      {
        extends: true,
        test: { name: 'unit', include: rooms.map(room => `test/${room}/**/*.test.ts`), exclude: startProcesses },
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
