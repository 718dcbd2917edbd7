import { findDayOf, findIdOf, type WireDocument } from '../../schema/resource.ts';
import type { DocumentSource } from '../../src/service/source.ts';

/** What a test makes of the documents of a service. */
export interface Edits {
  /** Identifiers of documents that the service does not have. */
  hidden: Set<string>;
  /** Documents as they are now, by identifier; their day stays. */
  changed: Map<string, Partial<WireDocument>>;
  /** Heart-rate rows from this moment on have one beat more. */
  fasterFrom: number;
  wrap(source: DocumentSource): DocumentSource;
}

const ALL = 1_000_000;

/** Documents that a test can change, hide and show again while they are served. */
export function editedSource(): Edits {
  const hidden = new Set<string>();
  const changed = new Map<string, Partial<WireDocument>>();
  const edits: Edits = {
    hidden,
    changed,
    fasterFrom: Number.POSITIVE_INFINITY,
    wrap: source => ({
      ...source,
      async list(userId, resource, { after, limit, ...range }) {
        const all = await source.list(userId, resource, { ...range, limit: ALL });
        const idOf = (document: WireDocument) => findIdOf(resource, document) ?? '';
        const isAfter = (document: WireDocument) =>
          !after || `${findDayOf(resource, document) ?? ''} ${idOf(document)}` > `${after.day} ${after.id}`;
        return all
          .filter(document => !hidden.has(idOf(document)) && isAfter(document))
          .slice(0, limit)
          .map(document => ({ ...document, ...changed.get(idOf(document)) }));
      },
      async find(userId, resource, id) {
        const document = hidden.has(id) ? undefined : await source.find(userId, resource, id);
        return document && { ...document, ...changed.get(id) };
      },
      async heartRate(userId, query) {
        const rows = await source.heartRate(userId, query);
        return rows.map(row => (Number(row.timestamp_unix) < edits.fasterFrom ? row : { ...row, bpm: Number(row.bpm) + 1 }));
      },
      personalInfo: userId => source.personalInfo(userId),
    }),
  };
  return edits;
}
