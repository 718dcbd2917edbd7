import { z } from 'zod';
import type { FieldAbout } from '../../schema/fields.ts';
import { findFieldAbout, unwrap } from '../../schema/fields.ts';
import type { Resource } from '../../schema/resource.ts';

/** Raise it when the same wire document would lie differently in the tables: stored hashes then differ, and the next read rewrites. */
export const MAPPING_VERSION = 1;

export type ColumnType = 'VARCHAR' | 'BIGINT' | 'DOUBLE' | 'BOOLEAN' | 'DATE' | 'TIMESTAMP' | 'INTEGER' | 'JSON';

export interface Column {
  name: string;
  type: ColumnType;
  comment: string;
}

interface FieldBase {
  key: string;
  /** Keys from the document downwards. */
  path: readonly string[];
  /** The key is promised within the object around it. */
  promised: boolean;
}

/** A field that has columns. */
export interface LeafField extends FieldBase {
  schema: z.ZodType;
  about: FieldAbout;
  /** Position of the (first) column in `Mapping.columns`. */
  column: number;
  /** Position in `Mapping.series`, for a Sample. */
  series: number;
  known?: undefined;
}

/** An object of fields, or the document itself. */
export interface ObjectField extends FieldBase {
  /** By their keys. */
  known: ReadonlyMap<string, Field>;
}

export type Field = LeafField | ObjectField;

export interface Series {
  /** `<resource>_<field>`. */
  table: string;
  path: readonly string[];
  column: number;
  comment: string;
}

/** How one document type lies in tables: derived from its declaration, used by reader, writer and DDL alike. */
export interface Mapping {
  resource: Resource;
  table: string;
  /** The mapped columns, without `user_id` and the bookkeeping ones; `id` and `day` are among them. */
  columns: readonly Column[];
  series: readonly Series[];
  root: ObjectField;
}

/** The columns of a document table that hold no field of the document. */
export const BOOKKEEPING: readonly Column[] = [
  { name: 'user_id', type: 'VARCHAR', comment: 'The account, as named by `account add`' },
  { name: 'extra', type: 'JSON', comment: 'Fields that came but have no column, or did not fit their column' },
  { name: 'sk', type: 'BIGINT', comment: 'Number of this stored version; joins the series tables' },
  { name: 'fetched_at', type: 'TIMESTAMP', comment: 'When the request that brought this version was sent, UTC' },
  { name: 'content_hash', type: 'VARCHAR', comment: 'Hash of what arrived' },
];

const SCALARS: Record<Exclude<FieldAbout['kind'], 'sample'>, ColumnType> = {
  text: 'VARCHAR',
  integer: 'BIGINT',
  number: 'DOUBLE',
  flag: 'BOOLEAN',
  day: 'DATE',
  instant: 'TIMESTAMP',
};

const OFFSET = 'seconds east of UTC';

/**
 * Derives the mapping of a resource. Throws when two fields would share a column or one would take a bookkeeping name: such a
 * declaration cannot be stored.
 */
export function mapResource(resource: Resource): Mapping {
  const columns: Column[] = [];
  const series: Series[] = [];

  const addColumn = (name: string, type: ColumnType, comment: string) => {
    if (columns.some(column => column.name === name) || BOOKKEEPING.some(column => column.name === name)) {
      throw new Error(`${resource.name}: two fields would lie in the column ${name}`);
    }
    columns.push({ name, type, comment });
  };

  const addLeaf = (key: string, about: FieldAbout, schema: z.ZodType, path: readonly string[], promised: boolean): LeafField => {
    const field = { key, path, promised, schema, about, column: columns.length, series: series.length };
    const name = path.join('_');
    const comment = about.unit ? `${about.description} [${about.unit}]` : about.description;
    if (about.kind === 'sample') {
      addColumn(`${name}_start`, 'TIMESTAMP', `${comment}: when recording started, UTC`);
      addColumn(`${name}_offset`, 'INTEGER', `Offset of ${name}_start [${OFFSET}]`);
      addColumn(`${name}_interval`, 'DOUBLE', `Time between the samples in ${resource.name}_${name} [s]`);
      addColumn(`${name}_count`, 'BIGINT', `Number of samples in ${resource.name}_${name}`);
      series.push({ table: `${resource.name}_${name}`, path, column: field.column, comment });
    } else {
      addColumn(name, SCALARS[about.kind], about.kind === 'instant' ? `${comment}, UTC` : comment);
      if (about.kind === 'instant') addColumn(`${name}_offset`, 'INTEGER', `Offset of ${name} [${OFFSET}]`);
    }
    return field;
  };

  const addObject = (key: string, { shape }: z.ZodObject, path: readonly string[], promised: boolean): ObjectField => ({
    key,
    path,
    promised,
    known: new Map(Object.entries(shape).map(([child, schema]) => [child, addField(child, schema, [...path, child])])),
  });

  const addField = (key: string, schema: z.core.$ZodType, path: readonly string[]): Field => {
    const declared = schema as z.ZodType;
    const about = findFieldAbout(declared);
    const inner = unwrap(declared);
    const promised = inner === declared;
    if (about) return addLeaf(key, about, inner, path, promised);
    if (inner instanceof z.ZodObject) return addObject(key, inner, path, promised);
    throw new Error(`${resource.name}: the field ${path.join('_')} is made by no function of schema/fields.ts`);
  };

  const root = addObject('', resource.document, [], true);
  return { resource, table: resource.name, columns, series, root };
}
