import type { DuckDBAppender } from '@duckdb/node-api';
import type { Column } from '../mapping.ts';

export interface AppendTarget {
  table: string;
  /** All of the table, in their order. */
  columns: readonly Column[];
  /** How many there will be. */
  rows: number;
}

export interface TableAppender {
  appender: DuckDBAppender;
  /** Once the appender is closed: brings into the table what was appended, where it is not there yet. */
  finish?(): Promise<void>;
}
