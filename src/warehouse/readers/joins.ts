import type { Resource } from '../../../schema/resource.ts';
import { type Mapping, mapAll, partsOf } from '../mapping.ts';

/** How rows of one table find those of another. */
export interface Join {
  from: string;
  to: string;
  /** As after JOIN … `USING (…)` or `ON …`. */
  on: string;
  /** How many rows of `to` there are for one of `from`. */
  many: boolean;
  /** The column that carries it. */
  label: string;
  /** What `to` is, seen from `from`. */
  meaning: string;
  /** What `from` is, seen from `to`. */
  back: string;
}

/** By user and day too, DuckDB passes over the rows of others. */
const onVersion = ({ table, resource: { dayField } }: Mapping, part: string) =>
  dayField === 'day'
    ? 'USING (user_id, day, sk)'
    : `ON ${['user_id', 'sk'].map(key => `${part}.${key} = ${table}.${key}`).join(' AND ')} AND ${part}.day = ${table}.${dayField}`;

/** The joins that the declarations and the ledger give. */
export function listJoins(resources: readonly Resource[]): Join[] {
  const mappings = mapAll(resources);
  const parts = mappings.flatMap(mapping =>
    partsOf(mapping).map(part => ({
      from: mapping.table,
      to: part.table,
      on: onVersion(mapping, part.table),
      many: true,
      label: 'sk',
      ...(mapping.series.includes(part)
        ? { meaning: `the samples of ${part.path.join('.')}`, back: 'the document of these samples' }
        : { meaning: `${part.path.join('.')}, a row for each`, back: 'the document of these rows' }),
    })),
  );
  const named = mappings.flatMap(({ table, resource: { namedBy } }) =>
    namedBy
      ? [
          {
            from: namedBy.resource,
            to: table,
            on: `ON ${table}.user_id = ${namedBy.resource}.user_id AND ${table}.id = ${namedBy.resource}.${namedBy.field}`,
            many: false,
            label: namedBy.field,
            meaning: `the document that ${namedBy.field} names`,
            back: 'the documents that name this one',
          },
        ]
      : [],
  );
  return [
    ...parts,
    ...named,
    {
      from: 'sync.runs',
      to: 'sync.windows',
      on: 'USING (run_id)',
      many: true,
      label: 'run_id',
      meaning: 'the windows that a run planned',
      back: 'the run that planned it',
    },
  ];
}
