import { RingneckError } from '../../../base/errors.ts';
import type { Mapping } from '../../mapping.ts';
import { copySorted, publishing } from '../../snapshot/publish.ts';
import { compareCounts } from '../../snapshot/refresh.ts';
import { listTables } from '../../tables.ts';
import type { Memory } from '../memory.ts';
import type { CopyOptions } from '../store.ts';

interface CopyParts extends CopyOptions {
  memory: Memory;
  mappings: readonly Mapping[];
  path: string;
}

/** Writes a warehouse's file of all that is committed in a lake: our tables, sorted; the views come when it is opened. May be repeated. */
export async function copyOut(parts: CopyParts): Promise<void> {
  const { connection, memory, mappings, atBeginning, beforeTable, signal } = parts;
  const tables = listTables(mappings);
  await publishing({ ...parts, mode: 0o600 }, async source => {
    // One transaction reads one state, however long the copy takes.
    await memory.transaction(connection, async () => {
      // A lake is read as it is when it is read first.
      await atBeginning?.(async () => void (await connection.run(`SELECT count(*) FROM ${source}.sync.meta`)));
      await connection.run('CREATE SCHEMA snapshot.sync');
      for (const table of tables) {
        beforeTable();
        await copySorted({ connection, signal }, source, table);
      }
      const { differing } = await compareCounts(connection, source, tables);
      if (differing.length) throw new RingneckError(`not copied whole: ${differing.join(', ')}; nothing was replaced`);
      await connection.run(`DELETE FROM snapshot.sync.meta WHERE key = 'views'`);
    });
  });
}
