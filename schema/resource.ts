import type { z } from 'zod';

/** A document as it travels: JSON, not yet checked. */
export type WireDocument = Record<string, unknown>;

export interface Declaration {
  /** The last part of `/v2/usercollection/<path>`, capitals included. */
  path: string;
  /** The name in webhook events and subscriptions. */
  dataType: string;
  /** The paragraph of the specification that lists the fields. */
  paragraph: string;
  /** One sentence for the table comment and the OpenAPI document. */
  summary: string;
  /** What section 4 lists; the other routes are served as marked extensions. */
  specified: readonly ('document' | 'collection')[];
  /** Whether the service counts the last day of a range in: activity, sleep and session leave it out. */
  endDay: 'included' | 'excluded';
  /** The field of another resource that names documents of this one: how they are found where the collection is not offered. */
  namedBy?: { resource: string; field: string };
  document: z.ZodObject;
}

export interface Resource extends Declaration {
  /** The table, the collection in commands and in the ledger: the path in lower case. */
  name: string;
  /** False for ring_configuration, which belongs to no day. */
  dated: boolean;
}

/** Declares a document type: the single place from which routes, validation, tables and documentation derive. */
export function resource(declaration: Declaration): Resource {
  return { ...declaration, name: declaration.path.toLowerCase(), dated: 'day' in declaration.document.shape };
}
