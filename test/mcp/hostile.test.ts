import { dirname } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LIMITS } from '../../src/mcp/server.ts';
import { type HostileHarness, MEMORY, openHostileHarness, SECONDS, someOfEach } from '../support/hostile-harness.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { openAssistant } from './served.ts';

let harness: HostileHarness;
beforeAll(async () => {
  harness = await openHostileHarness(tempFolder(), async (path, hostile) => {
    const limits = { ...LIMITS, memory: MEMORY, seconds: SECONDS[hostile.fate] };
    const assistant = await openAssistant(dirname(path), { limits });
    try {
      const output = await assistant.call('query', { sql: hostile.sql });
      const error = /^error: (.*)/s.exec(output)?.[1];
      return { ...hostile, error, output: error === undefined ? output : '' };
    } finally {
      await assistant.close();
    }
  });
});
afterAll(() => harness.close());

test('hostile statements of every kind through an assistant’s query read and write nothing but the warehouse’s rows', {
  timeout: 240_000,
}, async () => {
  const statements = someOfEach(harness.corpus);
  expect(statements.length).toBeGreaterThanOrEqual(15);
  await harness.withstand(statements);
});
