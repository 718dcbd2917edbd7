import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { FastifyInstance } from 'fastify';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { describeConsole } from '../../src/console/server/openapi.ts';
import { openConsoleHere, type Visitor } from '../support/console-harness.ts';
import { openHarness } from '../support/harness.ts';
import { startLiteralService } from '../support/literal-service.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { placePeople, sleepOf } from './people-by-hand.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into JSON of any shape.
type Json = any;

const place = { prefix: '/ring', cookie: 'ringneck-study-example' };
const operations = (document: Json): [method: string, path: string, operation: Json][] =>
  Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, operation]): [string, string, Json] => [method.toUpperCase(), path, operation]),
  );

test('the document is valid OpenAPI 3.1, and no operation has the name of another', async () => {
  const document = describeConsole(place);
  const validator = new Validator();
  const { valid, errors } = await validator.validate(structuredClone(document) as Json);
  expect([valid, errors]).toEqual([true, undefined]);
  expect(() => validator.resolveRefs()).not.toThrow();
  const names = operations(document).map(([, , { operationId }]) => operationId);
  expect(new Set(names).size).toBe(names.length);
  expect(document.servers).toEqual([{ url: '/ring/api' }]);
});

test('it says who may ask what, and how', () => {
  const { paths } = describeConsole(place) as Json;
  expect(paths['/people/{id}/trends'].get).toMatchObject({
    'x-role': 'person',
    security: [{ session: [] }],
    parameters: [
      { name: 'id', in: 'path', required: true },
      { name: 'metrics', in: 'query', required: true },
      { name: 'day', in: 'query', required: true },
      { name: 'days', in: 'query', required: true, schema: { type: 'integer', minimum: 1 } },
    ],
    responses: { 304: expect.anything(), default: { $ref: '#/components/responses/Error' } },
  });
  expect(paths['/actions/{name}'].post).toMatchObject({
    'x-role': 'operator',
    security: [{ session: [], csrf: [] }],
    parameters: [{ name: 'name', in: 'path' }],
    requestBody: { content: { 'application/json': { schema: { required: ['plan'] } } } },
  });
  expect(Object.keys(paths['/sql'].post.responses[200].content)).toEqual(['application/x-ndjson']);
  expect(paths['/enter'].post.security).toBeUndefined();
});

test('every route below /api is in it, and nothing else', async () => {
  const registered: string[] = [];
  const listen = (message: unknown) =>
    (message as { fastify: FastifyInstance }).fastify.addHook('onRoute', ({ method, url }) => {
      for (const one of [method].flat()) if (url.startsWith('/api/') && one !== 'HEAD') registered.push(`${one} ${url.slice(4)}`);
    });
  subscribe('fastify.initialization', listen);
  onTestFinished(() => void unsubscribe('fastify.initialization', listen));
  await openConsoleHere(join(tempFolder(), 'routes'));
  const described = operations(describeConsole(place)).map(([method, path]) => `${method} ${path.replace(/\{(\w+)\}/g, ':$1')}`);
  expect(registered.toSorted()).toEqual(described.toSorted());
  expect(registered.length).toBeGreaterThan(20);
});

/** What is asked where the address or the query needs something. */
const GIVEN: Record<string, string> = {
  ...{ id: 'ann', day: '2025-01-04', metrics: 'average_hrv,steps', metric: 'average_hrv' },
  ...{ from: '2025-01-01', to: '2025-01-04', days: '4' },
};

/** Asks an operation and returns what is wrong with the answer by its description. */
async function faultsOf(visitor: Visitor, document: Json, [method, path, operation]: [string, string, Json], body?: object) {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  const filled = path.replace(/\{(\w+)\}/g, (_: string, key: string) => GIVEN[key] ?? '');
  const needed = (operation.parameters ?? []).filter((one: Json) => one.in === 'query' && one.required);
  const query = new URLSearchParams(needed.map(({ name }: Json) => [name, GIVEN[name] ?? '']));
  const answer = await visitor.ask(`${method} ${filled.slice(1)}`, `?${query}`, body);
  const isGood = answer.status === 200;
  const { content } = isGood ? operation.responses[200] : document.components.responses.Error;
  const [[type, { schema }]] = Object.entries<Json>(content) as [[string, Json]];
  expect(answer.headers.get('content-type')).toContain(type);
  const check = ajv.compile({ ...schema, components: document.components });
  const said =
    type === 'application/x-ndjson'
      ? answer.body
          .trim()
          .split('\n')
          .map((line: string) => JSON.parse(line))
      : [answer.body];
  return { status: answer.status, faults: said.flatMap((one: unknown) => (check(one) ? [] : (check.errors ?? []))) };
}

let data: string;
beforeAll(async () => {
  const nights = ['2025-01-01', '2025-01-02', '2025-01-04'].map(day =>
    sleepOf(day, `${day}T00:30:00+01:00`, `${day}T08:30:00+01:00`, {
      average_hrv: 40,
      sleep_phase_5_min: '4321',
      heart_rate: { interval: 300, items: [60, null, 58], timestamp: `${day}T00:30:00+01:00` },
    }),
  );
  data = await placePeople({ ann: { sleep: nights }, ben: {} });
});

test('real answers are as it says, of everything that can be looked at', async () => {
  const visitor = await (await openConsoleHere(data)).enter();
  const { body: document } = await visitor.ask('GET openapi.json');
  const looked = operations(document).filter(([method, path]) => method === 'GET' && path !== '/stream');
  for (const operation of looked) {
    expect([operation[1], await faultsOf(visitor, document, operation)]).toEqual([operation[1], { status: 200, faults: [] }]);
  }
  const sql = operations(document).filter(([, path]) => path.startsWith('/sql') && path !== '/sql/{id}');
  for (const operation of sql) {
    const query = { id: 'q', sql: 'SELECT 1 AS one, NULL AS none' };
    expect([operation[1], await faultsOf(visitor, document, operation, query)]).toEqual([operation[1], { status: 200, faults: [] }]);
  }
  // What is refused, too.
  const [trends] = operations(document).filter(([, path]) => path === '/people/{id}/trends');
  const { body } = await visitor.ask('GET people/nobody/trends', '?metrics=steps&day=newest&days=2');
  const check = new Ajv2020({ strict: false }).compile(document.components.schemas.Error);
  expect([trends![2].responses.default.$ref, check(body), body.error.kind]).toEqual(['#/components/responses/Error', true, 'missing']);
});

test('real answers are as it says, of what is done and what the owner tells', async () => {
  const service = await startLiteralService('sleep');
  onTestFinished(() => service.close());
  const folder = join(tempFolder(), 'owned');
  const harness = await openHarness(folder, service.url);
  await harness.keep([{ name: 'ann', token: 'a' }]);
  await harness.commands.pauseAccount({ name: 'ann' });
  await harness.commands.snapshot({}, { signal: new AbortController().signal });
  const visitor = await (await openConsoleHere(folder, { commands: harness.commands })).enter();
  const { body: document } = await visitor.ask('GET openapi.json');
  const find = (method: string, path: string) => operations(document).find(one => one[0] === method && one[1] === path)!;
  for (const path of ['/operations', '/runs', '/events', '/log', '/sessions', '/session', '/people', '/coverage']) {
    expect([path, await faultsOf(visitor, document, find('GET', path))]).toEqual([path, { status: 200, faults: [] }]);
  }
  const { body: plan } = await visitor.ask('POST actions/resume/plan', '', { users: ['ann'] });
  const { body: done } = await visitor.ask('POST actions/resume', '', { plan: plan.plan });
  for (const [path, answer] of [
    ['/actions/{name}/plan', plan],
    ['/actions/{name}', done],
  ] as const) {
    const { schema } = find('POST', path)[2].responses[200].content['application/json'];
    expect([path, new Ajv2020({ strict: false }).compile(schema)(answer)]).toEqual([path, true]);
  }
});
