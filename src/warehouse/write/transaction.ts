import type { DuckDBConnection } from '@duckdb/node-api';
import type { Column } from '../mapping.ts';
import type { Value } from '../sql.ts';

/** What a store function needs of the writer. */
export interface Transaction {
  connection: DuckDBConnection;
  /** As `Store.takeSks`. */
  takeSks(count: number): Promise<number>;
  /** The columns of a table in the order in which they lie in the file. */
  columnsOf(table: string): readonly Column[];
  /** When the content of this document was last confirmed, where an older answer may still arrive. */
  confirmedAt(table: string, userId: string, id: string): number | undefined;
  /** To be remembered once the transaction is committed. */
  confirm(table: string, userId: string, id: string, moment: number): void;
  /** Rows of the ledger as they were before the transaction, kept until one touches the table. */
  readKept(table: string, sql: string): Promise<readonly Value[][]>;
}
