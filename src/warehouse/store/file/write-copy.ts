import { publishing } from '../../snapshot/publish.ts';
import { readRows } from '../database.ts';
import type { Memory } from '../memory.ts';
import type { CopyOptions } from '../store.ts';
import { copyDatabase, ensureWhole } from './copy-tables.ts';

interface CopyParts extends CopyOptions {
  memory: Memory;
  path: string;
}

/** Writes a sorted copy of all that an open warehouse has committed, which can take its place. May be repeated. */
export async function writeCopy(parts: CopyParts): Promise<void> {
  const { connection } = parts;
  const [[name] = []] = await readRows(connection, 'SELECT current_database()');
  const from = String(name);
  await publishing({ ...parts, mode: 0o600 }, async () => {
    await copyDatabase(parts, { from, to: 'snapshot' }, tables => ensureWhole(connection, from, tables));
  });
}
