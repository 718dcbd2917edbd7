import { jsonSchema } from '../../schema/fields.ts';
import { fieldsAlways, summaryOf } from '../../schema/resource.ts';
import { personalInfo } from '../../schema/resources/personal-info.ts';
import { errorResponses, errorSchemas, parameters } from './openapi-parts.ts';
import { HEART_RATE_PARAMETERS } from './query.ts';
import type { CollectionRoute, Route, RouteOptions } from './routes.ts';
import { listRoutes } from './routes.ts';
import { describeSignIn, signInSchemas, signInSecurity } from './sign-in/describe-sign-in.ts';
import { describeEvent, describeSubscriptions, subscriptionSchemas, subscriptionSecurity } from './webhooks/describe-subscriptions.ts';

type Json = Record<string, unknown>;

/** The OpenAPI 3.1 document of the service, derived from the schema. The same arguments give the same document. */
export function describeService(options: RouteOptions & { webhooks?: boolean; signIn?: boolean }): Json {
  const { resources, heartRate, specificationOnly = false, webhooks = false, signIn = false } = options;
  const routes = listRoutes(options);
  const schemas: Json = Object.fromEntries(
    resources.map(resource => [schemaName(resource.path), { ...schemaOf(resource.document), description: summaryOf(resource) }]),
  );
  for (const { resource } of routes.filter(isNarrowing)) {
    schemas[itemName(resource.path)] = itemOf(schemas[schemaName(resource.path)] as Json, fieldsAlways(resource));
  }
  schemas.HeartRateRow = { ...schemaOf(heartRate.row), description: `${heartRate.summary} (${heartRate.paragraph})` };
  schemas.HeartRateItem = itemOf(schemas.HeartRateRow as Json, ['timestamp']);
  if (routes.some(route => route.kind === 'personal_info')) {
    schemas.PersonalInfo = { ...schemaOf(personalInfo.document), description: personalInfo.summary };
  }

  return {
    openapi: '3.1.0',
    info: {
      title: 'Wearable Health Data Service',
      version: '2',
      description:
        'Read-only access to the health and wellness data that a ring records for a user. Operations marked x-extension are not listed in the interface specification.',
    },
    servers: [{ url: '/' }],
    security: [{ accessToken: [] }],
    paths: {
      ...Object.fromEntries(
        routes.map(route => [route.path, { get: { ...describeRoute(route, routes), ...(signIn ? securityOf(route) : {}) } }]),
      ),
      ...(signIn ? describeSignIn() : {}),
      ...(webhooks ? describeSubscriptions(specificationOnly) : {}),
    },
    ...(webhooks ? { webhooks: { event: describeEvent } } : {}),
    components: {
      schemas: { ...schemas, ...(webhooks ? subscriptionSchemas : {}), ...(signIn ? signInSchemas : {}), ...errorSchemas },
      parameters,
      responses: errorResponses,
      securitySchemes: {
        accessToken: { type: 'http', scheme: 'bearer', description: 'The access token of a user (5).' },
        ...(webhooks ? subscriptionSecurity : {}),
        ...(signIn ? signInSecurity : {}),
      },
    },
  };
}

/** `daily_sleep` is DailySleep. */
function schemaName(path: string): string {
  return path
    .split('_')
    .map(word => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

function schemaOf(document: Parameters<typeof jsonSchema>[0]): Json {
  const { $schema: _, ...schema } = jsonSchema(document);
  return schema;
}

function describeRoute(route: Route, routes: readonly Route[]): Json {
  const errors = [
    400,
    401,
    403,
    ...(route.kind === 'document' || route.kind === 'personal_info' ? [404] : []),
    413,
    422,
    429,
    431,
    500,
    503,
  ];
  return {
    operationId: operationOf(route),
    tags: [tagOf(route)],
    ...describeKind(route),
    responses: {
      200: { description: 'Found', content: { 'application/json': { schema: answerOf(route) } }, ...linksOf(route, routes) },
      ...Object.fromEntries(errors.map(status => [status, { $ref: `#/components/responses/${status}` }])),
    },
    ...(route.extension ? { 'x-extension': true } : {}),
  };
}

/** A token however it was obtained, or one of a sign-in with this scope. */
const securityOf = ({ scope }: Route): Json => ({ security: [{ accessToken: [] }, { oauth: [scope] }] });

const operationOf = ({ path }: Route) =>
  `get${path.replaceAll(/[^A-Za-z0-9]+(.)/g, (_, letter: string) => letter.toUpperCase()).replace('}', '')}`;

/** Where the documents of a collection can be had one by one. */
function linksOf(route: Route, routes: readonly Route[]): Json {
  const document = route.kind === 'collection' && routes.find(({ path }) => path === `${route.path}/{document_id}`);
  if (!document) return {};
  return { links: { document: { operationId: operationOf(document), parameters: { document_id: '$response.body#/data/0/id' } } } };
}

const tagOf = (route: Route) => ('resource' in route ? route.resource.name : route.kind);

function describeKind(route: Route): Json {
  const refer = (names: readonly string[]) => names.map(name => ({ $ref: `#/components/parameters/${name}` }));
  if (route.kind === 'document') return { summary: `One document: ${route.resource.summary}`, parameters: refer(['document_id']) };
  if (route.kind === 'collection')
    return { summary: `A range of documents: ${route.resource.summary}`, ...describeEndDay(route), parameters: refer(route.parameters) };
  if (route.kind === 'personal_info') return { summary: 'Who the user is.' };
  return { summary: 'Heart rate around the clock.', parameters: refer(HEART_RATE_PARAMETERS) };
}

function describeEndDay({ resource }: CollectionRoute): Json {
  if (!resource.dated) return { description: 'Belongs to no day and takes no range.' };
  if (resource.identifiedBy !== undefined)
    return { description: 'Rows without an identifier, told apart by their moment; the end is left out.' };
  return { description: `The end day is ${resource.endDay === 'excluded' ? 'left out' : 'counted in'}.` };
}

function answerOf(route: Route): Json {
  if (route.kind === 'personal_info') return { $ref: '#/components/schemas/PersonalInfo' };
  if (route.kind === 'heart_rate') return envelope('HeartRateItem', true);
  const name = schemaName(route.resource.path);
  if (route.kind === 'document') return { $ref: `#/components/schemas/${name}` };
  return envelope(isNarrowing(route) ? itemName(route.resource.path) : name, route.paged);
}

const isNarrowing = (route: Route): route is CollectionRoute => route.kind === 'collection' && route.parameters.includes('fields');

const itemName = (path: string) => `${schemaName(path)}Item`;

/** As it comes in an answer that `fields` may have narrowed (4.2). */
const itemOf = (schema: Json, always: readonly string[]): Json => ({
  ...schema,
  description: `${schema.description} Where fields are named, those and what always comes.`,
  required: always,
});

/** Section 2.16. */
function envelope(name: string, paged: boolean): Json {
  return {
    type: 'object',
    properties: {
      data: { type: 'array', items: { $ref: `#/components/schemas/${name}` } },
      ...(paged ? { next_token: { type: ['string', 'null'], description: 'Continues the answer; null on the last page.' } } : {}),
    },
    required: paged ? ['data', 'next_token'] : ['data'],
  };
}
