import type { DuckDBConnection } from '@duckdb/node-api';
import { json } from '../rows.ts';
import { quoteText } from '../sql.ts';
import { select } from '../store/database.ts';

/** A column of a table or view, as statements name them. */
export interface ColumnSource {
  relation: string;
  column: string;
}

/** The parts of `json_serialize_sql` that tell where a column comes from. */
interface Query {
  type: 'SELECT_NODE' | 'SET_OPERATION_NODE' | string;
  cte_map: { map: { key: string; value: { query: { node: Query } } }[] };
  select_list?: { class: string; alias: string; column_names?: string[]; replace_list?: unknown[] }[];
  from_table?: Relation;
  left?: Query;
  right?: Query;
}
interface Relation {
  type: 'BASE_TABLE' | 'SUBQUERY' | 'JOIN' | string;
  alias: string;
  schema_name?: string;
  table_name?: string;
  subquery?: { node: Query };
  left?: Relation;
  right?: Relation;
}

/** Finds the columns that a query passes on unchanged as this one of its own; none where it is computed. */
export async function openQuery(connection: DuckDBConnection, query: string): Promise<(column: string) => ColumnSource[]> {
  const [row] = await select(
    connection,
    { parsed: json<{ statements: { node: Query }[] }>() },
    `SELECT json_serialize_sql(${quoteText(query)})::VARCHAR`,
  );
  const node = row?.parsed.statements[0]?.node;
  return column => (node ? trace(node, column, new Map()) : []);
}

function trace(query: Query, column: string, outer: ReadonlyMap<string, Query>): ColumnSource[] {
  const named = new Map(outer);
  for (const { key, value } of query.cte_map.map) named.set(key, value.query.node);
  if (query.type === 'SET_OPERATION_NODE') return [query.left, query.right].flatMap(part => (part ? trace(part, column, named) : []));
  const passed = query.select_list?.find(item => (item.alias || item.column_names?.at(-1)) === column);
  const isStar = query.select_list?.some(item => item.class === 'STAR' && !item.replace_list?.length);
  if (passed ? passed.class !== 'COLUMN_REF' : !isStar) return [];
  const [name = column, relation] = passed?.column_names?.toReversed() ?? [];
  return listRelations(query.from_table)
    .filter(({ alias, table_name }) => relation === undefined || relation === (alias || table_name))
    .flatMap(from => follow(from, name, named));
}

function follow({ subquery, schema_name, table_name = '' }: Relation, column: string, named: ReadonlyMap<string, Query>): ColumnSource[] {
  if (subquery) return trace(subquery.node, column, named);
  const query = schema_name ? undefined : named.get(table_name);
  // Within, its name means something else, or itself.
  if (query) return trace(query, column, new Map([...named].filter(([name]) => name !== table_name)));
  return [{ relation: schema_name ? `${schema_name}.${table_name}` : table_name, column }];
}

function listRelations(from: Relation | undefined): Relation[] {
  if (!from) return [];
  if (from.type === 'JOIN') return [...listRelations(from.left), ...listRelations(from.right)];
  return from.subquery || from.table_name ? [from] : [];
}
