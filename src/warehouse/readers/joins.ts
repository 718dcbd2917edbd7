import type { Resource } from '../../../schema/resource.ts';
import { mapResource } from '../mapping.ts';

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

/** The joins that the declarations and the ledger give. */
export function listJoins(resources: readonly Resource[]): Join[] {
  const mappings = resources.map(mapResource);
  const series = mappings.flatMap(({ table, series }) =>
    series.map(({ table: samples, path }) => ({
      from: table,
      to: samples,
      on: 'USING (user_id, day, sk)',
      many: true,
      label: 'sk',
      meaning: `the samples of ${path.join('.')}`,
      back: 'the document of these samples',
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
    ...series,
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
