import { createHash } from 'node:crypto';
import { FORMAT } from '../format.ts';
import type { Column, Mapping } from '../mapping.ts';
import type { Table } from '../tables.ts';
import { composeCollectionViews, type DocumentTable } from './collection-views.ts';
import { declarationsHash } from './schema-evolution.ts';
import { readScripts } from './views.ts';

/** What was found or made in a warehouse, and from what it was made. */
export interface KnownSchema {
  /** Of the declarations, of the scripts, and of the program that reads by them. */
  hash: string;
  /** The names of each table's columns in the order in which they lie there. */
  columns: Readonly<Record<string, readonly string[]>>;
  documentTables: readonly DocumentTable[];
}

export function describeSchema(
  mappings: readonly Mapping[],
  columns: ReadonlyMap<string, readonly Column[]>,
  documentTables: readonly DocumentTable[],
): KnownSchema {
  const names = [...columns].map(([table, listed]) => [table, listed.map(({ name }) => name)]);
  return { hash: hashOf(mappings, documentTables), columns: Object.fromEntries(names), documentTables };
}

/**
 * The columns of each table, of a file whose schema is known and as this version makes it; undefined where it has to be looked at. Listing
 * what is in the file takes longer than all the rest of opening it.
 */
export function columnsOfKnown(
  known: KnownSchema | undefined,
  mappings: readonly Mapping[],
  tables: readonly Table[],
): Map<string, Column[]> | undefined {
  if (!known || known.hash !== hashOf(mappings, known.documentTables)) return undefined;
  return new Map(
    tables.map(({ name, columns }) => [name, known.columns[name]?.flatMap(one => columns.find(column => column.name === one) ?? []) ?? []]),
  );
}

const hashOf = (mappings: readonly Mapping[], documentTables: readonly DocumentTable[]) =>
  createHash('sha256')
    .update(JSON.stringify([FORMAT, declarationsHash(mappings), composeCollectionViews(documentTables), readScripts()]))
    .digest('base64url');
