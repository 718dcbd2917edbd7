import { jsonSchema } from '../../../schema/fields.ts';
import { webhookEvent, webhookSubscription } from '../../../schema/webhook.ts';
import { newSubscription, subscriptionUpdate } from './subscription-bodies.ts';
import { listSubscriptionRoutes, type SubscriptionRoute } from './subscription-routes.ts';

/** Section 4.4 as a part of the OpenAPI document. */

type Json = Record<string, unknown>;

const schemaOf = (shape: Parameters<typeof jsonSchema>[0], description: string): Json => {
  const { $schema: _, ...schema } = jsonSchema(shape);
  return { ...schema, description };
};

const refer = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });
const json = (schema: Json): Json => ({ content: { 'application/json': { schema } } });
const problem = (description: string, schema = 'Problem'): Json => ({ description, ...json(refer(schema)) });

export const subscriptionSchemas: Json = {
  WebhookSubscription: schemaOf(webhookSubscription, 'A subscription to one operation on one kind of data (2.15)'),
  WebhookEvent: schemaOf(webhookEvent, 'Something that happened to a document (2.17)'),
  NewWebhookSubscription: schemaOf(newSubscription, 'What to subscribe to (4.4)'),
  WebhookSubscriptionUpdate: schemaOf(subscriptionUpdate, 'What to change; null and absent leave a value as it is (4.4)'),
};

export const subscriptionSecurity: Json = {
  clientId: { type: 'apiKey', in: 'header', name: 'x-client-id', description: 'The id of a client (5).' },
  clientSecret: { type: 'apiKey', in: 'header', name: 'x-client-secret', description: 'The secret of a client (5).' },
};

/** The paths of section 4.4. */
export function describeSubscriptions(specificationOnly: boolean): Record<string, Json> {
  const paths: Record<string, Json> = {};
  for (const route of listSubscriptionRoutes(specificationOnly)) {
    paths[route.path] = { ...paths[route.path], [route.method]: describeRoute(route, specificationOnly) };
  }
  return paths;
}

interface Operation {
  summary: string;
  description?: string;
  body?: string;
  /** Of the answer that is no error. */
  status: number;
  answer?: Json;
  errors: readonly number[];
}

const VERIFIED = 'Answers after the verification of the callback (6.2), which takes 10 seconds at most.';

const OPERATIONS: Record<SubscriptionRoute['kind'], Operation> = {
  list: {
    summary: 'The subscriptions of the client',
    status: 200,
    answer: { type: 'array', items: refer('WebhookSubscription') },
    errors: [],
  },
  create: {
    summary: 'Subscribe to an operation on a kind of data',
    description: VERIFIED,
    body: 'NewWebhookSubscription',
    status: 201,
    answer: refer('WebhookSubscription'),
    errors: [409, 415, 422],
  },
  read: { summary: 'One subscription', status: 200, answer: refer('WebhookSubscription'), errors: [404] },
  update: {
    summary: 'Change a subscription',
    description: VERIFIED,
    body: 'WebhookSubscriptionUpdate',
    status: 200,
    answer: refer('WebhookSubscription'),
    errors: [404, 409, 415, 422],
  },
  renew: {
    summary: 'Let a subscription last its whole time again from now',
    status: 200,
    answer: refer('WebhookSubscription'),
    errors: [404],
  },
  cancel: { summary: 'Cancel a subscription', status: 204, errors: [404] },
};

const ERRORS: Record<number, Json> = {
  400: problem('Client exception: the path cannot be decoded.'),
  401: problem('Unauthorized: id or secret of the client is missing or wrong.'),
  404: problem('Not found: the client has no such subscription; one that was cancelled or has expired is unknown.'),
  409: problem('There is a subscription for this operation and kind of data.'),
  413: problem('Content too large.'),
  415: problem('The body is not said to be JSON.'),
  422: problem('Validation error, also when the callback did not pass its verification.', 'HTTPValidationError'),
  431: problem('Header fields too large: request line and headers hold more than 16 kB.'),
  500: problem('Internal error.'),
  503: problem('Service unavailable: the answer took too long.'),
};

/** What any of these routes may answer. */
const COMMON = [400, 401, 413, 431, 500, 503];

const operationOf = (kind: SubscriptionRoute['kind']) => `${kind}WebhookSubscription${kind === 'list' ? 's' : ''}`;

function describeRoute({ kind, path, extension }: SubscriptionRoute, specificationOnly: boolean): Json {
  const { summary, description, body, status, answer, errors: all } = OPERATIONS[kind];
  // As 4.4 has it, a conflict is a validation error.
  const errors = all.filter(error => !(specificationOnly && error === 409));
  const links = Object.fromEntries(
    listSubscriptionRoutes(specificationOnly)
      .filter(route => route.path.includes('{id}'))
      .map(route => [route.kind, { operationId: operationOf(route.kind), parameters: { id: '$response.body#/id' } }]),
  );
  return {
    operationId: operationOf(kind),
    tags: ['webhook'],
    summary,
    ...(description ? { description } : {}),
    security: [{ clientId: [], clientSecret: [] }],
    ...(path.includes('{id}')
      ? {
          parameters: [
            { name: 'id', in: 'path', required: true, description: 'Identifier of the subscription.', schema: { type: 'string' } },
          ],
        }
      : {}),
    ...(body ? { requestBody: { required: true, ...json(refer(body)) } } : {}),
    responses: {
      [status]: { description: 'Done', ...(answer ? json(answer) : {}), ...(kind === 'create' ? { links } : {}) },
      ...Object.fromEntries([...COMMON, ...errors].map(error => [error, ERRORS[error]])),
    },
    ...(extension ? { 'x-extension': true } : {}),
  };
}

/** What the service sends to a callback (6.1). */
export const describeEvent: Json = {
  post: {
    operationId: 'receiveEvent',
    tags: ['webhook'],
    summary: 'Something happened to a document',
    description: 'Sent again after 4xx, 5xx and no answer in 10 seconds, 10 times each over about an hour.',
    security: [],
    parameters: [
      header('x-service-timestamp', 'When it was sent, in seconds since the epoch.'),
      header('x-service-signature', 'HMAC with SHA-256, keyed with the client secret, over timestamp and body: upper-case hex (5.3).'),
    ],
    requestBody: { required: true, ...json(refer('WebhookEvent')) },
    responses: { '2XX': { description: 'Received' }, 410: { description: 'Cancels the subscription' } },
  },
};

function header(name: string, description: string): Json {
  return { name, in: 'header', required: true, description, schema: { type: 'string' } };
}
