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

/** One field of a document. A leaf knows where its columns begin; an object has the leaves inside. */
export interface Field {
  key: string;
  /** Keys from the document downwards. */
  path: readonly string[];
  /** The key is promised within the object around it. */
  promised: boolean;
  schema: z.ZodType;
  about?: FieldAbout;
  /** Position of the (first) column in `Mapping.columns`. */
  column: number;
  /** Position in `Mapping.series`, for a Sample. */
  series: number;
  fields?: readonly Field[];
  known?: ReadonlyMap<string, Field>;
}

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
  root: Field;
}

/** The columns of a document table that hold no field of the document. */
export const BOOKKEEPING: readonly Column[] = [
  { name: 'user_id', type: 'VARCHAR', comment: 'The account, as named by `account add`' },
  { name: 'extra', type: 'JSON', comment: 'Fields that came but have no column, or did not fit their column' },
  { name: 'sk', type: 'BIGINT', comment: 'Number of this stored version; joins the series tables' },
  { name: 'fetched_at', type: 'TIMESTAMP', comment: 'When the request that brought this version was sent, UTC' },
  { name: 'content_hash', type: 'VARCHAR', comment: 'Hash of what arrived' },
];

const SCALARS: Record<string, ColumnType> = {
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

  const addField = (key: string, schema: z.ZodType, path: readonly string[]): Field => {
    const about = findFieldAbout(schema);
    const inner = unwrap(schema);
    const promised = inner === schema;
    const field: Field = {
      key,
      path,
      promised,
      schema: inner,
      about,
      column: columns.length,
      series: -1,
    };
    const name = path.join('_');
    if (about) {
      const comment = about.unit ? `${about.description} [${about.unit}]` : about.description;
      if (about.kind === 'sample') {
        addColumn(`${name}_start`, 'TIMESTAMP', `${comment}: when recording started, UTC`);
        addColumn(`${name}_offset`, 'INTEGER', `Offset of ${name}_start [${OFFSET}]`);
        addColumn(`${name}_interval`, 'DOUBLE', `Time between the samples in ${resource.name}_${name} [s]`);
        addColumn(`${name}_count`, 'BIGINT', `Number of samples in ${resource.name}_${name}`);
        field.series = series.length;
        series.push({ table: `${resource.name}_${name}`, path, column: field.column, comment });
      } else {
        addColumn(name, SCALARS[about.kind]!, about.kind === 'instant' ? `${comment}, UTC` : comment);
        if (about.kind === 'instant') addColumn(`${name}_offset`, 'INTEGER', `Offset of ${name} [${OFFSET}]`);
      }
      return field;
    }
    if (!(inner instanceof z.ZodObject)) throw new Error(`${resource.name}: the field ${name} is made by no function of schema/fields.ts`);
    field.fields = Object.entries(inner.shape).map(([child, childSchema]) => addField(child, childSchema as z.ZodType, [...path, child]));
    field.known = new Map(field.fields.map(child => [child.key, child]));
    return field;
  };

  const root = addField('', resource.document, []);
  return { resource, table: resource.name, columns, series, root };
}
