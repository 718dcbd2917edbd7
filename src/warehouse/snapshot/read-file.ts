import { openReader } from '../query.ts';

/** What a snapshot says of itself; null what it does not, as one of another version may. */
export interface SnapshotFile {
  /** Milliseconds. */
  takenAt: number | null;
  program: string | null;
  declarations: string | null;
}

/**
 * Reads what a file says of itself, at once; undefined where it is no snapshot.
 * @throws RingneckError when it cannot be opened; TryLaterError when another process has it open for writing
 */
export async function readSnapshotFile(path: string): Promise<SnapshotFile | undefined> {
  const reader = await openReader(path, { memoryLimit: '64MB', patienceMs: 0 });
  const readRow = async (sql: string): Promise<Record<string, string | null> | undefined> => {
    const { columns, chunks } = await reader.query(sql);
    let found: Record<string, string | null> | undefined;
    for await (const [row] of chunks) found ??= Object.fromEntries(columns.map(({ name, text }, i) => [name, text(row![i]!)]));
    return found;
  };
  try {
    if (!(await readRow(`SELECT 1 FROM duckdb_tables() WHERE schema_name = 'sync' AND table_name = 'snapshot'`))) return undefined;
    const row = await readRow('FROM sync.snapshot');
    const takenAt = Date.parse(`${row?.taken_at}Z`);
    return { takenAt: Number.isNaN(takenAt) ? null : takenAt, program: row?.program ?? null, declarations: row?.declarations ?? null };
  } finally {
    reader.close();
  }
}
