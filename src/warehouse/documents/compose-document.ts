import { formatInstant } from '../../../schema/instant.ts';
import type { WireDocument } from '../../../schema/resource.ts';
import { ExactNumber, parseJson } from '../../base/json.ts';
import type { LeafField, Mapping, ObjectField } from '../mapping.ts';
import type { Value } from '../sql.ts';

/**
 * Writes a stored row as the wire document it came from: required keys always, optional ones when they hold something, what
 * `extra` kept merged back in its place.
 * @param values in the order of `mapping.columns`, as `parseDocument` made them
 * @param items of each series in the order of `mapping.series`; a null value is NaN
 */
export function composeDocument(
  mapping: Mapping,
  values: readonly Value[],
  items: readonly (Float64Array | undefined)[],
  extra: string | null,
): WireDocument {
  const kept = extra ? parseJson(extra) : undefined;
  const { document } = composeObject(mapping.root, values, items, kept);
  if (isRecord(kept)) merge(document, kept);
  return document;
}

/** @param kept what `extra` holds in the place of this object */
function composeObject(
  object: ObjectField,
  values: readonly Value[],
  items: readonly (Float64Array | undefined)[],
  kept: unknown,
): { document: WireDocument; empty: boolean } {
  const document: WireDocument = {};
  let empty = !isRecord(kept);
  for (const field of object.known.values()) {
    if (field.known) {
      const inner = composeObject(field, values, items, isRecord(kept) ? kept[field.key] : undefined);
      if (!inner.empty || field.promised) document[field.key] = inner.document;
      if (!inner.empty) empty = false;
      continue;
    }
    const value = composeLeaf(field, values, items);
    if (value !== null || field.promised) document[field.key] = value;
    if (value !== null) empty = false;
  }
  return { document, empty };
}

function composeLeaf(field: LeafField, values: readonly Value[], items: readonly (Float64Array | undefined)[]): unknown {
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
