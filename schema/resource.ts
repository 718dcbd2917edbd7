import type { z } from 'zod';
import { dayOfMicros, findInstant, isoOf } from './instant.ts';
import type { Scope } from './scopes.ts';

/** A document as it travels: JSON, not yet checked. */
export type WireDocument = Record<string, unknown>;

/** All that is particular about a document type. What is optional says how it differs from the usual one. */
export interface Declaration {
  /** The last part of `/v2/usercollection/<path>`, capitals included. */
  path: string;
  /** The name in webhook events and subscriptions; none where nothing announces them. */
  dataType?: string;
  /** Another name that events and subscriptions may have it under. */
  dataTypeAlias?: string;
  /** The paragraph of the specification that lists the fields; none when the specification does not know the type. */
  paragraph?: string;
  /** One sentence for the table comment and the OpenAPI document. */
  summary: string;
  /** What a person must have granted for it to be read. */
  scope: Scope;
  /** What section 4 lists; the other routes are served as marked extensions. Nothing of a type that the specification does not know. */
  specified: readonly ('document' | 'collection')[];
  /** The specification shows its collection without a `next_token` (2.16). */
  specifiedWithoutPages?: true;
  /** The specification shows dates as the only parameters of its collection (4.2). */
  specifiedWithDatesOnly?: true;
  /** Whether the service counts the last day of a range in: activity, sleep and session leave it out. */
  endDay: 'included' | 'excluded';
  /** The field with the instant that a range of date-times is compared with; without one it is the midnight of the day, UTC. */
  startsAt?: string;
  /** The field with the day that a document belongs to, where it is not called `day`. */
  dayField?: string;
  /** They are rows, without `id` and day: this field has the moment that gives both. They are asked for by moments, and none by itself. */
  identifiedBy?: string;
  /** The field that is null while it goes on, which may be for weeks, and its end may be announced to nobody: nights look at it until it is set. */
  endsAt?: string;
  /** The path to the offset of that midnight, in seconds east of UTC. */
  dayOffset?: readonly string[];
  /** The field of another resource that names documents of this one: how they are found where the collection is not offered. */
  namedBy?: { resource: string; field: string };
  /** It grows until 4 a.m. of the day after its own, and not each growth is an event. */
  grows?: true;
  /** New data reach the service also while nobody opens the app. */
  comesInBackground?: true;
  /** It comes with what a ring has measured: its event tells that there is heart rate of its time. */
  bringsHeartRate?: true;
  document: z.ZodObject;
}

export interface Resource extends Declaration {
  /** The table, the collection in commands and in the ledger: the path in lower case. */
  name: string;
  /** The field with the day that a document belongs to, and the column of the table. */
  dayField: string;
  /** Whether its documents belong to days: those of ring_configuration do not. */
  dated: boolean;
}

/** Declares a document type: the single place from which routes, validation, tables, events and documentation derive. */
export function resource(declaration: Declaration): Resource {
  const { path, dayField = 'day', identifiedBy, document } = declaration;
  return { ...declaration, name: path.toLowerCase(), dayField, dated: identifiedBy !== undefined || dayField in document.shape };
}

/** What tells a document from the others of its person and type: its identifier, of rows their moment in UTC; undefined where it says none. */
export function findIdOf({ identifiedBy }: Pick<Resource, 'identifiedBy'>, document: unknown): string | undefined {
  if (identifiedBy === undefined) return findText(document, 'id');
  const micros = findMicros(document, identifiedBy);
  return micros === undefined ? undefined : isoOf(micros);
}

/** What the documents of a day are ordered by: the identifier, of rows their moment, whose texts are in order of time without the Z. */
export const orderOfId = ({ identifiedBy }: Pick<Resource, 'identifiedBy'>, id: string): string =>
  identifiedBy === undefined ? id : id.replace(/Z$/, '');

/** The day that a document says it belongs to, of rows that of their moment in UTC; undefined where it says none. */
export function findDayOf({ dayField, identifiedBy }: Pick<Resource, 'dayField' | 'identifiedBy'>, document: unknown): string | undefined {
  if (identifiedBy === undefined) return findText(document, dayField);
  const micros = findMicros(document, identifiedBy);
  return micros === undefined ? undefined : dayOfMicros(micros);
}

function findText(document: unknown, field: string): string | undefined {
  const value: unknown = typeof document === 'object' && document !== null ? Reflect.get(document, field) : undefined;
  return typeof value === 'string' ? value : undefined;
}

/** The moment in a field, where it is exact. */
export function findMicros(document: unknown, field: string): number | undefined {
  const micros = findInstant(findText(document, field) ?? '')?.micros;
  return Number.isSafeInteger(micros) ? micros : undefined;
}

/** The fields that come whatever is asked for. */
export const fieldsAlways = ({ identifiedBy, dated, dayField }: Resource): string[] =>
  identifiedBy === undefined ? ['id', ...(dated ? [dayField] : [])] : [identifiedBy];

/** The names in events of those types that have any. */
export const dataTypesOf = (resources: readonly Pick<Resource, 'dataType'>[]): string[] =>
  resources.flatMap(({ dataType }) => dataType ?? []);

/** Its summary, and where the specification lists its fields. */
export const summaryOf = ({ summary, paragraph }: Resource): string => (paragraph ? `${summary} (${paragraph})` : summary);

/** By paragraph, 2.9 before 2.10; those without one last, by name. */
export function inOrder(resources: readonly Resource[]): Resource[] {
  const isBeyond = ({ paragraph }: Resource) => Number(paragraph === undefined);
  const placeOf = ({ paragraph, name }: Resource) => paragraph ?? name;
  return resources.toSorted((a, b) => isBeyond(a) - isBeyond(b) || ORDER.compare(placeOf(a), placeOf(b)));
}

const ORDER = new Intl.Collator('en', { numeric: true });
