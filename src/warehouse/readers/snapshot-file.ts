import type { Mapping } from '../mapping.ts';
import { snapshotDeclarations } from '../snapshot/metadata.ts';
import { openReader } from './open-reader.ts';

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
  const reader = await openReader({ path, memoryLimit: '64MB', patienceMs: 0 });
  try {
    const [table] = await reader.read(`SELECT 1 FROM duckdb_tables() WHERE schema_name = 'sync' AND table_name = 'snapshot'`);
    if (!table) return undefined;
    const [[text] = []] = await reader.read('SELECT to_json(s)::VARCHAR FROM sync.snapshot s LIMIT 1');
    const said: Record<string, string | null | undefined> = JSON.parse(String(text ?? '{}'));
    const takenAt = Date.parse(`${said.taken_at}Z`);
    return { takenAt: Number.isNaN(takenAt) ? null : takenAt, program: said.program ?? null, declarations: said.declarations ?? null };
  } finally {
    reader.close();
  }
}

/** Whether its tables and views are those that this program would make. */
export const isOfThisVersion = ({ declarations }: SnapshotFile, mappings: readonly Mapping[]): boolean =>
  declarations === snapshotDeclarations(mappings);
