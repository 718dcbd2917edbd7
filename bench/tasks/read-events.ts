import { DuckDBInstance } from '@duckdb/node-api';
import { performTask } from '../task.ts';

export interface ReadEventsJob {
  path: string;
  /** Tables of documents, and the first day of those that events announced. */
  tables: string[];
  from: string;
}

export interface EventsRead {
  /** How many events came to which outcome. */
  outcomes: Record<string, number>;
  /** When each was received and committed, in the order in which they came: milliseconds since the epoch. */
  times: [number, number][];
  /** Rows of documents from that day on. */
  documents: number;
}

/** What a closed warehouse knows of the events that it was told of. */
performTask(async ({ path, tables, from }: ReadEventsJob): Promise<EventsRead> => {
  const instance = await DuckDBInstance.create(path, { access_mode: 'READ_ONLY' });
  const connection = await instance.connect();
  const read = async (sql: string) => (await connection.runAndReadAll(sql)).getRows();
  const outcomes = (await read('SELECT outcome, count(*) FROM sync.events GROUP BY 1 ORDER BY 1')).map(row => [row[0], Number(row[1])]);
  const times = await read('SELECT epoch_us(received_at) / 1000, epoch_us(committed_at) / 1000 FROM sync.events ORDER BY 1');
  const counts = tables.map(table => `(SELECT count(*) FROM "${table}" WHERE day >= DATE '${from}')`);
  const [[documents]] = (await read(`SELECT ${counts.join(' + ')}`)) as [[bigint]];
  connection.closeSync();
  instance.closeSync();
  return { outcomes: Object.fromEntries(outcomes), times: times as [number, number][], documents: Number(documents) };
});
