import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import { resources } from '../../schema/index.ts';
import { heartRate } from '../../schema/resources/heart-rate.ts';
import { describeService } from '../../src/service/openapi.ts';
import { listRoutes } from '../../src/service/routes.ts';
import { startService } from './literal-service.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into JSON of any shape.
const describe = (specificationOnly = false): any => describeService({ resources, heartRate, specificationOnly });

test.each([false, true])('the document is valid OpenAPI 3.1, specificationOnly %s', async specificationOnly => {
  const validator = new Validator();
  const { valid, errors } = await validator.validate(structuredClone(describe(specificationOnly)));
  expect([valid, errors]).toEqual([true, undefined]);
  expect(validator.version).toBe('3.1');
  expect(() => validator.resolveRefs()).not.toThrow();
});

test('with the sign-in it is valid too: five extensions, and each data route says which scope it needs', async () => {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into JSON of any shape.
  const document: any = describeService({ resources, heartRate, signIn: true });
  const { valid, errors } = await new Validator().validate(structuredClone(document));
  expect([valid, errors]).toEqual([true, undefined]);
  const operations = Object.entries<Record<string, Record<string, unknown>>>(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, ...operation })),
  );
  const ofSignIn = operations.filter(({ name }) => name.includes('/oauth/'));
  expect(ofSignIn.map(({ name }) => name)).toEqual([
    'get /oauth/authorize',
    'post /oauth/authorize',
    'post /oauth/token',
    'get /oauth/revoke',
    'post /oauth/revoke',
  ]);
  for (const operation of ofSignIn) expect(operation).toMatchObject({ 'x-extension': true, security: [], operationId: expect.any(String) });
  const scopeOf = (path: string) => document.paths[path].get.security;
  expect(scopeOf('/v2/usercollection/sleep')).toEqual([{ accessToken: [] }, { oauth: ['daily'] }]);
  expect(scopeOf('/v2/sandbox/usercollection/heartrate')).toEqual([{ accessToken: [] }, { oauth: ['heartrate'] }]);
  expect(scopeOf('/v2/usercollection/personal_info')).toEqual([{ accessToken: [] }, { oauth: ['personal'] }]);
});

test('the same arguments give the same text', () => {
  expect(JSON.stringify(describe())).toBe(JSON.stringify(describe()));
});

test('it describes every route, and marks those that section 4 does not list', () => {
  const { paths } = describe();
  const extensions = Object.keys(paths).filter(path => paths[path].get['x-extension']);
  expect(Object.keys(paths)).toHaveLength(listRoutes({ resources, heartRate }).length);
  expect(Object.keys(paths).filter(path => !extensions.includes(path))).toEqual(Object.keys(describe(true).paths));
  expect(Object.keys(describe(true).paths).sort()).toEqual(
    [
      '/v2/usercollection/daily_readiness/{document_id}',
      '/v2/usercollection/daily_sleep/{document_id}',
      '/v2/usercollection/daily_activity/{document_id}',
      '/v2/usercollection/daily_spo2/{document_id}',
      '/v2/usercollection/daily_stress/{document_id}',
      '/v2/usercollection/vO2_max/{document_id}',
      '/v2/usercollection/sleep_time/{document_id}',
      '/v2/usercollection/ring_configuration/{document_id}',
      '/v2/usercollection/daily_readiness',
      '/v2/usercollection/daily_activity',
      '/v2/usercollection/daily_spo2',
      '/v2/usercollection/daily_resilience',
      '/v2/usercollection/daily_stress',
      '/v2/usercollection/vO2_max',
      '/v2/usercollection/sleep',
      '/v2/usercollection/session',
      '/v2/sandbox/usercollection/heartrate',
    ].sort(),
  );
});

test('operations have names of their own', () => {
  const names = Object.values<{ get: { operationId: string } }>(describe().paths).map(({ get }) => get.operationId);
  expect(new Set(names).size).toBe(names.length);
  expect(names).toContain('getV2UsercollectionVO2MaxDocumentId');
});

test('fields carry their descriptions, units and types', () => {
  const { DailyActivity, HeartRateRow, VO2Max } = describe().components.schemas;
  expect(DailyActivity.properties.active_calories).toMatchObject({ type: 'integer', description: 'Energy spent by moving [kcal]' });
  expect(DailyActivity.properties.met.properties.items).toEqual({ type: 'array', items: { type: ['number', 'null'] } });
  expect(DailyActivity.required).toContain('timestamp');
  expect(DailyActivity.required).not.toContain('score');
  expect(HeartRateRow.required).toEqual(['timestamp', 'timestamp_unix', 'bpm', 'source']);
  expect(VO2Max.properties.day).toMatchObject({ type: 'string', format: 'date' });
});

test('errors are described with their bodies and headers', () => {
  const { paths, components } = describe();
  const { responses } = paths['/v2/usercollection/sleep'].get;
  expect(Object.keys(responses)).toEqual(['200', '400', '401', '403', '413', '422', '429', '431', '500', '503']);
  expect(Object.keys(paths['/v2/usercollection/sleep/{document_id}'].get.responses)).toContain('404');
  expect(Object.keys(components.responses[429].headers)).toEqual([
    'Retry-After',
    'X-RateLimit-Limit',
    'X-RateLimit-Window',
    'X-RateLimit-Reset',
    'X-RateLimit-Tier',
  ]);
  expect(components.responses[422].content['application/json'].schema.$ref).toBe('#/components/schemas/HTTPValidationError');
});

test('where fields narrow an answer, only what always comes is required of it; of a single document all is', () => {
  const { paths, components } = describe();
  const answer = (path: string) => paths[`/v2/usercollection/${path}`].get.responses[200].content['application/json'].schema;
  const itemsOf = (path: string) => components.schemas[answer(path).properties.data.items.$ref.replace('#/components/schemas/', '')];
  expect(itemsOf('sleep').required).toEqual(['id', 'day']);
  expect(itemsOf('ring_configuration').required).toEqual(['id']);
  expect(itemsOf('heartrate').required).toEqual(['timestamp']);
  expect(itemsOf('sleep').properties).toEqual(components.schemas.Sleep.properties);
  expect(answer('sleep/{document_id}')).toEqual({ $ref: '#/components/schemas/Sleep' });
  const asSpecified = describe(true).paths['/v2/usercollection/daily_resilience'].get.responses[200].content['application/json'].schema;
  expect(asSpecified.properties.data.items).toEqual({ $ref: '#/components/schemas/DailyResilience' });
});

test('every answer that may come of a large body or header is described, of webhooks and the sign-in too', () => {
  const { paths } = describeService({ resources, heartRate, webhooks: true, signIn: true }) as {
    paths: Record<string, Record<string, { responses: object }>>;
  };
  for (const commands of Object.values(paths))
    for (const { responses } of Object.values(commands))
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(['413', '431', '500']));
});

test('with specificationOnly the envelopes and parameters are those of the specification', () => {
  const resilience = describe(true).paths['/v2/usercollection/daily_resilience'].get;
  expect(resilience.parameters).toEqual([{ $ref: '#/components/parameters/start_date' }, { $ref: '#/components/parameters/end_date' }]);
  expect(resilience.responses[200].content['application/json'].schema.required).toEqual(['data']);
  const ring = describe().paths['/v2/usercollection/ring_configuration'].get;
  expect(ring.parameters).toEqual([{ $ref: '#/components/parameters/next_token' }, { $ref: '#/components/parameters/fields' }]);
});

test('the service serves it at /openapi.json, and a page to browse it at /docs, without a token', async () => {
  const { get, url } = await startService({ ada: { documents: {} } });
  expect((await get('/openapi.json', null)).body).toEqual(JSON.parse(JSON.stringify(describe())));
  expect((await get('/docs/json', null)).body.openapi).toBe('3.1.0');
  const page = await fetch(`${url}/docs/`);
  expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  expect(await page.text()).toContain('swagger-ui');
  const script = await fetch(`${url}/docs/static/swagger-ui-bundle.js`);
  expect([script.status, (await script.text()).length > 100_000]).toEqual([200, true]);
  expect((await get('/docs/static/%2e%2e%2fpackage.json', null)).status).not.toBe(200);
});

test('the end of a sleep always comes, and may be null: the sleep may go on', () => {
  const { Sleep } = describe().components.schemas;
  expect(Sleep.required).toContain('bedtime_end');
  expect(Sleep.properties.bedtime_end).toMatchObject({ type: ['string', 'null'], format: 'date-time' });
  expect(Sleep.properties.bedtime_start).toMatchObject({ type: 'string' });
});
