import type { Resource } from '../../schema/resource.ts';
import type { HeartRate } from '../../schema/resources/heart-rate.ts';
import type { Scope } from '../../schema/scopes.ts';

interface Place {
  /** As OpenAPI writes it, with `{document_id}`. */
  path: string;
  /** Not listed in section 4. */
  extension: boolean;
  /** What the user must have granted. */
  scope: Scope;
}

export interface DocumentRoute extends Place {
  kind: 'document';
  resource: Resource;
}

export interface CollectionRoute extends Place {
  kind: 'collection';
  resource: Resource;
  /** The query parameters that count; others are ignored. */
  parameters: readonly string[];
  /** Whether answers have a `next_token`; the others give the whole range at once. */
  paged: boolean;
}

export interface HeartRateRoute extends Place {
  kind: 'heart_rate';
}

export interface PersonalInfoRoute extends Place {
  kind: 'personal_info';
}

export type Route = DocumentRoute | CollectionRoute | HeartRateRoute | PersonalInfoRoute;

export interface RouteOptions {
  resources: readonly Resource[];
  heartRate: HeartRate;
  specificationOnly?: boolean;
}

const PLAIN = '/v2/usercollection';
const SANDBOX = '/v2/sandbox/usercollection';

/** Every data route of the service, those of section 4 and the extensions. The service serves this list and the OpenAPI document describes it. */
export function listRoutes({ resources, heartRate, specificationOnly = false }: RouteOptions): Route[] {
  const routes = [
    ...resources.flatMap(resource => resourceRoutes(resource, PLAIN, resource.specified, specificationOnly)),
    { kind: 'heart_rate', path: heartRate.sandboxPath, extension: false, scope: heartRate.scope } as const,
    { kind: 'heart_rate', path: heartRate.plainPath, extension: true, scope: heartRate.scope } as const,
    { kind: 'personal_info', path: `${PLAIN}/personal_info`, extension: true, scope: 'personal' } as const,
    ...resources.flatMap(resource => resourceRoutes(resource, SANDBOX, [], specificationOnly)),
  ];
  return specificationOnly ? routes.filter(route => !route.extension) : routes;
}

function resourceRoutes(resource: Resource, prefix: string, specified: Resource['specified'], specificationOnly: boolean): Route[] {
  const path = `${prefix}/${resource.path}`;
  const range = rangeParameters(resource);
  const { scope } = resource;
  const collection: CollectionRoute = {
    kind: 'collection',
    path,
    extension: !specified.includes('collection'),
    scope,
    resource,
    parameters: specificationOnly && resource.specifiedWithDatesOnly ? range : [...range, 'next_token', 'fields'],
    paged: !(specificationOnly && resource.specifiedWithoutPages),
  };
  if (resource.identifiedBy !== undefined) return [collection];
  return [collection, { kind: 'document', path: `${path}/{document_id}`, extension: !specified.includes('document'), scope, resource }];
}

function rangeParameters({ identifiedBy, dated }: Resource): string[] {
  if (identifiedBy !== undefined) return ['start_datetime', 'end_datetime', 'latest'];
  return dated ? ['start_date', 'end_date'] : [];
}
