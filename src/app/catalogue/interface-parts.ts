import { z } from 'zod';
import { findFieldAbout, findItem, jsonSchema, unwrap } from '../../../schema/fields.ts';
import { resources } from '../../../schema/index.ts';
import { dataTypesOf, type Resource } from '../../../schema/resource.ts';
import { readinessContributors } from '../../../schema/resources/contributors.ts';
import { heartRate } from '../../../schema/resources/heart-rate.ts';
import { personalInfo } from '../../../schema/resources/personal-info.ts';
import { scopeMeanings, scopes } from '../../../schema/scopes.ts';
import { DATA_TYPES, namesOf, webhookEvent, webhookSubscription } from '../../../schema/webhook.ts';
import { describeService } from '../../service/openapi.ts';
import { parameters } from '../../service/openapi-parts.ts';
import { type CollectionRoute, listRoutes, type Route } from '../../service/routes.ts';
import { defaultSettings } from '../../service/settings.ts';
import { SIGN_IN_ROUTES } from '../../service/sign-in/sign-in-routes.ts';
import { listSubscriptionRoutes } from '../../service/webhooks/subscription-routes.ts';

/** What docs/interface.md says of the declarations, by the names in its markers. */
export const INTERFACE_PARTS: Readonly<Record<string, () => string>> = {
  'readiness contributors': () => describeFields(readinessContributors),
  'document types': () => resources.map(describeType).join('\n\n'),
  'heart rate': () => describeFields(heartRate.row),
  subscription: () => describeFields(webhookSubscription),
  'data types': listDataTypes,
  event: () => describeFields(webhookEvent),
  'personal info': () => describeFields(personalInfo.document),
  documents: () => table(['path', 'document'], routesOf('document').map(whereServed)),
  collections: listCollections,
  parameters: () =>
    table(
      ['parameter', 'meaning'],
      Object.values(parameters)
        .filter(({ in: place }) => place === 'query')
        .map(({ name, description }) => [code(name), String(description)]),
    ),
  scopes: () =>
    table(
      ['scope', 'what it lets a client read'],
      scopes.map(scope => [code(scope), scopeMeanings[scope]]),
    ),
  'sign-in routes': () =>
    table(
      ['method', 'path', 'does'],
      SIGN_IN_ROUTES.map(({ method, path, kind }) => [method.toUpperCase(), code(path), kind]),
    ),
  'subscription routes': () =>
    table(
      ['method', 'path', 'does', 'in the specification'],
      listSubscriptionRoutes(false).map(({ method, path, kind, extension }) => [method.toUpperCase(), code(path), kind, yesNo(!extension)]),
    ),
  errors: () => listErrors(path => !path.startsWith('/v2/webhook')),
  'subscription errors': () => listErrors(path => path.startsWith('/v2/webhook')),
  limits: listLimits,
};

type Json = Record<string, unknown>;

const code = (text: unknown) => `\`${text}\``;
const yesNo = (is: boolean) => (is ? 'yes' : 'no');
const cell = (text: string) => text.replaceAll('|', '\\|').replace(/\s+/g, ' ');

const row = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;

const table = (heads: readonly string[], rows: readonly (readonly string[])[]): string =>
  [row(heads), `|${'---|'.repeat(heads.length)}`, ...rows.map(row)].join('\n');

function describeType(resource: Resource): string {
  const { paragraph, name, summary, path, dataType, identifiedBy, scope, document } = resource;
  const events = dataType === undefined ? 'no events' : `webhook data type ${namesOf(dataType).map(code).join(' or ')}`;
  return [
    `### ${paragraph ? `${paragraph} ` : ''}${name}`,
    summary,
    [
      `Path segment ${code(path)}; ${events}; scope ${code(scope)}.`,
      ...(paragraph ? [] : ['Beyond the specification.']),
      ...(identifiedBy === undefined ? [] : [`Rows without an identifier: ${code(identifiedBy)} tells them apart.`]),
    ].join(' '),
    describeFields(document),
  ].join('\n\n');
}

const describeFields = (object: z.ZodObject): string => table(['field', 'type', 'required', 'meaning'], fieldsOf(object));

function fieldsOf(object: z.ZodObject, path = ''): string[][] {
  return Object.entries(object.shape).flatMap(([key, field]) => {
    const schema = field as z.ZodType;
    const [name, inner, required] = [path + key, unwrap(schema), yesNo(!schema.safeParse(undefined).success)];
    if (inner === readinessContributors) return [[code(name), 'object', required, 'Readiness contributors (2.2)']];
    const item = findItem(schema);
    if (item) return [[code(name), 'array of objects', required, meaningOf(schema)], ...fieldsOf(item, `${name}[].`)];
    if (inner instanceof z.ZodObject && !findFieldAbout(schema)) {
      return [[code(name), 'object', required, ''], ...fieldsOf(inner, `${name}.`)];
    }
    return [[code(name), typeOf(schema), required, meaningOf(schema)]];
  });
}

function typeOf(schema: z.ZodType): string {
  const about = findFieldAbout(schema);
  if (about?.kind === 'sample') return 'Sample (2.1)';
  if (about?.kind === 'texts') return 'array of strings';
  const { type, format } = jsonSchema(unwrap(schema)) as { type: string | string[]; format?: string };
  return `${[type].flat()[0]}${format ? `, ${format}` : ''}${about?.mayBeNull ? ', or null' : ''}`;
}

function meaningOf(schema: z.ZodType): string {
  const { description, minimum, maximum, ...json } = jsonSchema(unwrap(schema)) as Json & { minimum?: number; maximum?: number };
  const values = (findFieldAbout(schema)?.values ?? json.enum) as readonly string[] | undefined;
  const bounded = minimum !== undefined && maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER;
  const range = bounded && !String(description).includes(`${minimum} to ${maximum}`) ? `${minimum} to ${maximum}` : undefined;
  return [description, range, values && `one of ${values.map(code).join(', ')}`].filter(Boolean).join('; ');
}

function listDataTypes(): string {
  const held = new Set(dataTypesOf(resources));
  return table(
    ['data type', 'document'],
    DATA_TYPES.map(name => [
      namesOf(name).map(code).join(', also '),
      held.has(name)
        ? resources
            .filter(({ dataType }) => dataType === name)
            .map(shownType)
            .join(', ')
        : 'none here: it can be subscribed to, and no event comes',
    ]),
  );
}

const shownType = ({ name, paragraph }: Resource) => `${code(name)}${paragraph ? ` (${paragraph})` : ''}`;

const routesOf = <Kind extends Route['kind']>(kind: Kind): Extract<Route, { kind: Kind }>[] =>
  listRoutes({ resources, heartRate }).filter(
    (route): route is Extract<Route, { kind: Kind }> => route.kind === kind && !route.path.startsWith('/v2/sandbox'),
  );

const whereServed = ({ path, extension, resource }: Extract<Route, { resource: Resource }>) => [
  code(path),
  `${shownType(resource)}${extension ? ', beyond the specification' : ''}`,
];

function listCollections(): string {
  const range = ({ resource: { dated, identifiedBy, endDay } }: CollectionRoute) =>
    identifiedBy === undefined ? (dated ? endDay : 'takes no range') : 'range of moments';
  const asSpecified = ({ resource }: CollectionRoute) =>
    [resource.specifiedWithDatesOnly && 'dates only', resource.specifiedWithoutPages && 'no `next_token`'].filter(Boolean).join(', ');
  return table(
    ['path', 'items', 'end day', 'as specified'],
    routesOf('collection').map(route => [...whereServed(route), range(route), asSpecified(route)]),
  );
}

/** What the routes of some paths may answer besides the document asked for, by status. */
function listErrors(matches: (path: string) => boolean): string {
  const service = describeService({ resources, heartRate, webhooks: true }) as {
    paths: Record<string, Record<string, { responses: Record<string, { $ref?: string; description?: string }> }>>;
    components: { responses: Record<string, { description: string }> };
  };
  const responses = Object.entries(service.paths)
    .filter(([path]) => matches(path))
    .flatMap(([, methods]) => Object.values(methods).flatMap(route => Object.entries(route.responses)));
  const meanings = new Map(
    responses.map(([status, { $ref, description }]) => [status, $ref ? service.components.responses[status]!.description : description!]),
  );
  const errors = [...meanings].filter(([status]) => Number(status) >= 400).sort(([a], [b]) => Number(a) - Number(b));
  return table(['status', 'meaning'], errors);
}

function listLimits(): string {
  const { pageSize, heartRatePageSize, rateLimit, appRateLimit, bodyLimit, requestTimeoutMs, answerTimeoutMs } = defaultSettings;
  const count = (value: number) => value.toLocaleString('en');
  const limit = (value: typeof rateLimit) => (value === 'off' ? 'none' : `${count(value.requests)} in ${count(value.seconds)} s`);
  return table(
    ['limit of `ringneck service`', 'default'],
    [
      ['documents on a page', count(pageSize)],
      ['heart-rate rows on a page', count(heartRatePageSize)],
      ['requests of a token', limit(rateLimit)],
      ['requests of all tokens together', limit(appRateLimit)],
      ['body of a request', `${count(bodyLimit)} bytes`],
      ['time until a request must have arrived', `${requestTimeoutMs / 1000} s`],
      ['time until an answer must be ready', `${answerTimeoutMs / 1000} s`],
    ],
  );
}
