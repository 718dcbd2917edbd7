import type { Mapping } from '../mapping.ts';
import { selectId, snapshotDeclarations } from '../snapshot/metadata.ts';
import { openReader } from './open-reader.ts';

/** What a snapshot says of itself; null what it does not, as one of another version may. */
export interface SnapshotFile {
  /** Milliseconds. */
  takenAt: number | null;
  /** Identifier of the warehouse that it is a copy of; null too where that had none yet. */
  warehouse: string | null;
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
    return {
      takenAt: Number.isNaN(takenAt) ? null : takenAt,
      warehouse: said.warehouse ?? null,
      program: said.program ?? null,
      declarations: said.declarations ?? null,
    };
  } finally {
    reader.close();
  }
}

/**
 * The identifier of a warehouse that nobody owns; null before it has one.
 * @throws TryLaterError when somebody has become its owner
 */
export async function readWarehouseId(path: string): Promise<string | null> {
  const reader = await openReader({ path, memoryLimit: '64MB', as: 'warehouse' });
  try {
    const [[id] = []] = await reader.read(selectId('warehouse'));
    return typeof id === 'string' ? id : null;
  } finally {
    reader.close();
  }
}

/** Whether its tables and views are those that this program would make. */
export const isOfThisVersion = ({ declarations }: SnapshotFile, mappings: readonly Mapping[]): boolean =>
  declarations === snapshotDeclarations(mappings);
