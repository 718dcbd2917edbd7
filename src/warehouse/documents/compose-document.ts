import { formatInstant } from '../../../schema/instant.ts';
import type { WireDocument } from '../../../schema/resource.ts';
import { ExactNumber, parseJson } from '../../base/json.ts';
import type { LeafField, Mapping, ObjectField } from '../mapping.ts';
import type { Value } from '../sql.ts';

/** What is stored of a document. */
export interface StoredRow {
  /** In the order of `Mapping.columns`, as `parseDocument` made them. */
  values: readonly Value[];
  /** Of each series in the order of `Mapping.series`; a null value is NaN. */
  items: readonly (Float64Array | undefined)[];
  /** Of each array of objects in the order of `Mapping.lists`: of each object the values in the order of `List.columns`. */
  lists: readonly (readonly (readonly Value[])[] | undefined)[];
}

/**
 * Writes a stored row as the wire document it came from: required keys always, optional ones when they hold something, what
 * `extra` kept merged back in its place.
 */
export function composeDocument(mapping: Mapping, row: StoredRow, extra: string | null): WireDocument {
  const kept = extra ? parseJson(extra) : undefined;
  const { document } = composeObject(mapping, mapping.root, row, kept);
  if (isRecord(kept)) merge(document, kept);
  return document;
}

/** @param kept what `extra` holds in the place of this object */
function composeObject(
  mapping: Pick<Mapping, 'lists'>,
  object: ObjectField,
  row: StoredRow,
  kept: unknown,
): { document: WireDocument; empty: boolean } {
  const document: WireDocument = {};
  let empty = !isRecord(kept);
  for (const field of object.known.values()) {
    if (field.known) {
      const inner = composeObject(mapping, field, row, isRecord(kept) ? kept[field.key] : undefined);
      if (!inner.empty || field.promised) document[field.key] = inner.document;
      if (!inner.empty) empty = false;
      continue;
    }
    const value = composeLeaf(mapping, field, row);
    if (value !== null || field.promised) document[field.key] = value;
    if (value !== null) empty = false;
  }
  return { document, empty };
}

function composeLeaf(mapping: Pick<Mapping, 'lists'>, field: LeafField, { values, items, lists }: StoredRow): unknown {
  const value = values[field.column];
  if (value === null || value === undefined) return null;
  const instant = () => formatInstant({ micros: Number(value), offset: Number(values[field.column + 1] ?? 0) });
  switch (field.about.kind) {
    case 'instant':
      return instant();
    case 'sample':
      return {
        interval: values[field.column + 2],
        items: Array.from(items[field.series] ?? [], item => (Number.isNaN(item) ? null : item)),
        timestamp: instant(),
      };
    case 'texts':
      return JSON.parse(String(value));
    case 'objects': {
      const list = mapping.lists[field.list];
      const rows = lists[field.list] ?? [];
      return list
        ? rows.map(values => composeObject({ lists: [] }, list.root, { values, items: [], lists: [] }, undefined).document)
        : null;
    }
    default:
      return value;
  }
}

/** Lays what `extra` kept over the document; where both have an object, key by key. */
function merge(target: WireDocument, extra: WireDocument): void {
  for (const [key, value] of Object.entries(extra)) {
    const present = Object.hasOwn(target, key) ? target[key] : undefined;
    if (isRecord(present) && isRecord(value)) merge(present, value);
    else Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  }
}

function isRecord(value: unknown): value is WireDocument {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}
