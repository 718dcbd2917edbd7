import { z } from 'zod';
import type { FieldAbout } from '../../schema/fields.ts';
import { findFieldAbout, findItem, unwrap } from '../../schema/fields.ts';
import type { Resource } from '../../schema/resource.ts';
import { personalInfo } from '../../schema/resources/personal-info.ts';

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
  /** Keys from the document downwards, or from the object of an array. */
  path: readonly string[];
  /** The key is promised within the object around it. */
  promised: boolean;
}

/** A field that has columns. */
export interface LeafField extends FieldBase {
  schema: z.ZodType;
  about: FieldAbout;
  /** Position of the (first) column in `Layout.columns`. */
  column: number;
  /** Position in `Layout.series`, for a Sample. */
  series: number;
  /** Position in `Layout.lists`, for an array of objects. */
  list: number;
  known?: undefined;
}

/** An object of fields, or the document itself. */
export interface ObjectField extends FieldBase {
  /** By their keys. */
  known: ReadonlyMap<string, Field>;
}

export type Field = LeafField | ObjectField;

/** A table with rows of a document beside its own. */
interface Part {
  /** `<resource>_<field>`. */
  table: string;
  path: readonly string[];
  /** Position of the column with the number of rows. */
  count: number;
  comment: string;
}

export type Series = Part;

/** An array of objects: a row for each. */
export interface List extends Part {
  /** Those of the objects' fields. */
  columns: readonly Column[];
  root: ObjectField;
}

interface Layout {
  columns: readonly Column[];
  series: readonly Series[];
  lists: readonly List[];
  root: ObjectField;
}

/** How one document type lies in tables: derived from its declaration, used by reader, writer and DDL alike. */
export interface Mapping extends Layout {
  resource: Resource;
  table: string;
  /** The mapped columns, without `user_id` and the bookkeeping ones; `id` and the day are among them. */
  columns: readonly Column[];
  /** Position of `id` in `columns`. */
  idAt: number;
  /** The column with the day of a document; undefined where documents belong to none. */
  dayColumn: string | undefined;
  /** Its position in `columns`; below 0 where there is none. */
  dayAt: number;
}

/** The tables that have rows of a document beside its own. */
export const partsOf = ({ series, lists }: Layout): readonly Part[] => [...series, ...lists];

/** The columns of a document table that hold no field of the document. */
export const BOOKKEEPING: readonly Column[] = [
  { name: 'user_id', type: 'VARCHAR', comment: 'The account, as named by `account add`' },
  { name: 'extra', type: 'JSON', comment: 'Fields that came but have no column, or did not fit their column' },
  { name: 'sk', type: 'BIGINT', comment: 'Number of this stored version; joins the series tables' },
  { name: 'fetched_at', type: 'TIMESTAMP', comment: 'When the request that brought this version was sent, UTC' },
  { name: 'content_hash', type: 'VARCHAR', comment: 'Hash of what arrived' },
];

/** The columns of rows that no field of theirs has. */
const derivedColumns = ({ identifiedBy, dayField }: Resource): Column[] =>
  identifiedBy === undefined
    ? []
    : [
        { name: 'id', type: 'VARCHAR', comment: `What tells the row from others: its ${identifiedBy} in UTC, as a text` },
        { name: dayField, type: 'DATE', comment: `The day of ${identifiedBy} in UTC` },
      ];

/** The columns of a table of objects that hold none of their fields. */
export const listBookkeeping = (resource: Pick<Resource, 'name'>): Column[] => [
  { name: 'sk', type: 'BIGINT', comment: `The version of the document, sk of ${resource.name}` },
  { name: 'user_id', type: 'VARCHAR', comment: 'The account, as named by `account add`' },
  { name: 'day', type: 'DATE', comment: 'The day of the document' },
  { name: 'position', type: 'BIGINT', comment: 'Place in the array, from 0 [count]' },
];

const SCALARS: Record<Exclude<FieldAbout['kind'], 'sample' | 'objects'>, ColumnType> = {
  text: 'VARCHAR',
  texts: 'JSON',
  integer: 'BIGINT',
  number: 'DOUBLE',
  flag: 'BOOLEAN',
  day: 'DATE',
  instant: 'TIMESTAMP',
};

const OFFSET = 'seconds east of UTC';

/**
 * Derives the mapping of a resource. Throws when two fields would share a column or one would take a bookkeeping name, or when the objects
 * of an array hold more than leaves: such a declaration cannot be stored.
 */
export function mapResource(resource: Resource): Mapping {
  const { name, document, dated, dayField } = resource;
  const derived = derivedColumns(resource);
  const layout = new LayoutBuilder(resource, name, [...BOOKKEEPING, ...derived]).build(document);
  const columns = [...layout.columns, ...derived];
  const dayColumn = dated ? dayField : undefined;
  const placeOf = (column: string | undefined) => columns.findIndex(({ name }) => name === column);
  return { ...layout, columns, resource, table: name, idAt: placeOf('id'), dayColumn, dayAt: placeOf(dayColumn) };
}

const mapped = new WeakMap<readonly Resource[], readonly Mapping[]>();

/** The mappings of all that has tables of documents: these types, and who the person is. Made once for each list of types. */
export function mapAll(resources: readonly Resource[]): readonly Mapping[] {
  const mappings = mapped.get(resources) ?? [...resources, personalInfo].map(mapResource);
  mapped.set(resources, mappings);
  return mappings;
}

/** Lays out the fields of a document, or of the objects of an array. */
class LayoutBuilder {
  readonly #resource: Resource;
  readonly #table: string;
  readonly #bookkeeping: readonly Column[];
  readonly #columns: Column[] = [];
  readonly #series: Series[] = [];
  readonly #lists: List[] = [];

  constructor(resource: Resource, table: string, bookkeeping: readonly Column[]) {
    this.#resource = resource;
    this.#table = table;
    this.#bookkeeping = bookkeeping;
  }

  build(object: z.ZodObject): Layout {
    const root = this.#addObject('', object, [], true);
    return { columns: this.#columns, series: this.#series, lists: this.#lists, root };
  }

  #addColumn(name: string, type: ColumnType, comment: string): void {
    if ([...this.#columns, ...this.#bookkeeping].some(column => column.name === name)) {
      throw new Error(`${this.#table}: two fields would lie in the column ${name}`);
    }
    this.#columns.push({ name, type, comment });
  }

  #addObject(key: string, { shape }: z.ZodObject, path: readonly string[], promised: boolean): ObjectField {
    const known = new Map(Object.entries(shape).map(([child, schema]) => [child, this.#addField(child, schema, [...path, child])]));
    return { key, path, promised, known };
  }

  #addField(key: string, schema: z.core.$ZodType, path: readonly string[]): Field {
    const declared = schema as z.ZodType;
    const about = findFieldAbout(declared);
    const inner = unwrap(declared);
    const promised = inner === declared;
    if (about) return this.#addLeaf({ key, path, promised, schema: inner, about });
    if (inner instanceof z.ZodObject) return this.#addObject(key, inner, path, promised);
    throw new Error(`${this.#table}: the field ${path.join('_')} is made by no function of schema/fields.ts`);
  }

  #addLeaf(leaf: Pick<LeafField, 'key' | 'path' | 'promised' | 'schema' | 'about'>): LeafField {
    const { about, path } = leaf;
    const field = { ...leaf, column: this.#columns.length, series: this.#series.length, list: this.#lists.length };
    const name = path.join('_');
    const comment = about.unit ? `${about.description} [${about.unit}]` : about.description;
    if (about.kind === 'sample') this.#addSample(name, path, comment);
    else if (about.kind === 'objects') this.#addList(name, field, comment);
    else {
      this.#addColumn(name, SCALARS[about.kind], about.kind === 'instant' ? `${comment}, UTC` : comment);
      if (about.kind === 'instant') this.#addColumn(`${name}_offset`, 'INTEGER', `Offset of ${name} [${OFFSET}]`);
    }
    return field;
  }

  #addSample(name: string, path: readonly string[], comment: string): void {
    const table = `${this.#table}_${name}`;
    this.#addColumn(`${name}_start`, 'TIMESTAMP', `${comment}: when recording started, UTC`);
    this.#addColumn(`${name}_offset`, 'INTEGER', `Offset of ${name}_start [${OFFSET}]`);
    this.#addColumn(`${name}_interval`, 'DOUBLE', `Time between the samples in ${table} [s]`);
    this.#addColumn(`${name}_count`, 'BIGINT', `Number of samples in ${table}`);
    this.#series.push({ table, path, count: this.#columns.length - 1, comment });
  }

  #addList(name: string, { path, schema }: Pick<LeafField, 'path' | 'schema'>, comment: string): void {
    const table = `${this.#table}_${name}`;
    const item = findItem(schema);
    if (!item) throw new Error(`${this.#table}: the field ${name} is no array of objects`);
    const { columns, series, lists, root } = new LayoutBuilder(this.#resource, table, listBookkeeping(this.#resource)).build(item);
    if (series.length || lists.length) throw new Error(`${table}: the objects of an array hold neither samples nor arrays of objects`);
    this.#addColumn(`${name}_count`, 'BIGINT', `${comment}: number of rows in ${table}`);
    this.#lists.push({ table, path, count: this.#columns.length - 1, comment, columns, root });
  }
}
