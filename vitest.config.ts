import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Rooms whose tests start no other process and open no queue, but for three files: `npm run test:unit`. */
const rooms = ['base', 'client', 'ledger', 'receiver', 'schema', 'service', 'sign-in', 'simulator'];
const startProcesses = ['test/base/access.test.ts', 'test/service/lock.test.ts', 'test/simulator/killed.test.ts'];
/** Rooms whose tests start others and share a process themselves. */
const shared = ['app', 'cli', 'console', 'end-to-end', 'examples', 'jobs', 'mcp', 'queue', 'support', 'sync', 'warehouse'];

/** What must hold of a lake as of a file; the tests of a lake alone say whether this machine has what they need. */
const contract = ['order'];
const canHaveLakes = process.env.DUCKDB_TEST_EXTENSIONS !== undefined;

export default defineConfig({
  test: {
    globalSetup: ['test/support/memory.ts', 'test/support/build.ts'],
    setupFiles: ['test/support/each-file.ts'],
    // Limits for what hangs: a loaded machine must not reach them.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // It calls itself a quick start, which in a test it is.
    onConsoleLog: log => !log.includes('oidc-provider '),
    expect: { poll: { timeout: 30_000 } },
    pool: 'forks',
    // A quarter of the time a worker waits for what it started.
    maxWorkers: availableParallelism() + 1,
    // What files import is loaded once by each worker, a third of their time: hooks of shared helpers stand inside of functions.
    projects: [
      {
        extends: true,
        test: {
          name: 'lake',
          include: canHaveLakes ? contract.map(name => `test/warehouse/${name}.test.ts`) : [],
          env: { TEST_STORE: 'lake' },
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'unit',
          include: rooms.map(room => `test/${room}/**/*.test.ts`),
          exclude: startProcesses,
          setupFiles: ['test/support/quick-keys-unit.ts'],
          isolate: false,
        },
      },
      {
        extends: true,
        test: { name: 'shared', include: shared.map(room => `test/${room}/**/*.test.ts`), isolate: false },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: ['test/*.test.ts', `test/!(${[...rooms, ...shared, 'campaign'].join('|')})/**/*.test.ts`, ...startProcesses],
        },
      },
    ],
  },
});
