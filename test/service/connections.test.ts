import type { Server } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { createService } from '../../src/service/service.ts';

/** A service, which is also how the mirror serves. */
function service() {
  const source = { list: async () => [], find: async () => undefined, heartRate: async () => [], personalInfo: async () => undefined };
  const made = createService({
    resources: [],
    source: source as never,
    authenticate: () => undefined,
    clock: () => new Date(),
    tokenKey: new Uint8Array(32),
  });
  onTestFinished(() => made.close());
  return made;
}

test('service and mirror bound connections, and the time that one may be slow or unused', async () => {
  const made = service();
  await made.listen({ host: '127.0.0.1', port: 0 });
  const { maxConnections, headersTimeout, requestTimeout, keepAliveTimeout } = made.server as Server;
  expect({ maxConnections, headersTimeout, requestTimeout, keepAliveTimeout }).toEqual({
    maxConnections: 500,
    headersTimeout: 30_000,
    requestTimeout: 30_000,
    keepAliveTimeout: 70_000,
  });
});
