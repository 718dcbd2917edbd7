import { join } from 'node:path';
import { runTask } from '../child.ts';
import { COLLECTIONS, ensureRecording } from '../recording.ts';
import { type Bench, inMegabytes, type Row } from '../row.ts';
import type { Shrunk } from '../tasks/shrink.ts';

const LIMIT = 1.3;

/** How large the file is after half of the people were erased from it, and after all in it was rewritten, against one made of what is left. */
export async function measureErase(bench: Bench): Promise<Row[]> {
  const recording = ensureRecording(bench.erasePeople, COLLECTIONS);
  const folder = bench.newFolder();
  const shrunk = (what: 'erase' | 'rewrite') => runTask<Shrunk>('shrink', { recording, folder: join(folder, what), what });
  const rows: Row[] = [];
  for (const [what, text] of [
    ['erase', 'half of them were erased'],
    ['rewrite', 'every document and every heart rate was replaced by another'],
  ] as const) {
    const { before, bytes, fresh } = await shrunk(what);
    bench.say(`${what}: ${before} bytes before, ${bytes} after, ${fresh} fresh`);
    rows.push({
      what: `size of the file of ${bench.erasePeople} user-years after ${text}, by itself`,
      against: 'a file into which nothing else was ever stored',
      limit: `${LIMIT}×`,
      measured: `${(bytes / fresh).toFixed(2)}× (${inMegabytes(bytes)} / ${inMegabytes(fresh)}; ${inMegabytes(before)} before)`,
      holds: bytes <= fresh * LIMIT,
    });
  }
  return rows;
}
