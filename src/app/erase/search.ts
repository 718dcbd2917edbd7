import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { messageOf, RingneckError } from '../../base/errors.ts';
import { addressOf } from '../../queue/redis-address.ts';
import type { Needle } from '../../warehouse/readers/search.ts';
import type { AppOptions } from '../app-options.ts';
import type { Searched } from './report.ts';

/** What the child is told, on its standard input: arguments and environment are for everybody to see. */
export interface SearchOrder {
  data: string;
  snapshot: string;
  dated: string;
  words: readonly Needle[];
  redis: { url: string; address: string; prefix: string; warehouseId: string } | null;
}

// In the source tree it lies where the build has put it.
const CHILD = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../../../dist/src/app/erase/search-child.js' : './search-child.js', import.meta.url),
);

/** Searches all that is kept for words, in a process that has nothing of ours open. Nobody may have the warehouse open. */
export async function searchFolder(
  { settings }: Pick<AppOptions, 'settings'>,
  words: readonly Needle[],
  warehouseId: string,
): Promise<Searched> {
  const { data, snapshot, queueUrl, queuePrefix } = settings;
  const redis = queueUrl ? { url: queueUrl, address: addressOf(queueUrl), prefix: queuePrefix, warehouseId } : null;
  const order: SearchOrder = { data, snapshot, dated: join(dirname(snapshot), 'snapshots'), words, redis };
  const child = spawn(process.execPath, [CHILD], { stdio: ['pipe', 'pipe', 'pipe'], env: {} });
  const ended = new Promise<number | NodeJS.Signals | null>((resolve, reject) => {
    child.once('error', reject).once('close', (code, signal) => resolve(signal ?? code));
  });
  child.stdin.on('error', () => undefined).end(JSON.stringify(order));
  const [end, result, said] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  if (end !== 0)
    throw new RingneckError(`the rows are erased, but the search afterwards failed (${said.trim() || `it ended with ${end}`})`);
  try {
    return JSON.parse(result);
  } catch (error) {
    throw new RingneckError(`the rows are erased, but the search afterwards gave no answer (${messageOf(error)})`, 1, { cause: error });
  }
}
