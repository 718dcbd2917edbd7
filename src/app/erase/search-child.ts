import { text } from 'node:stream/consumers';
import { messageOf } from '../../base/errors.ts';
import type { SearchOrder } from './search.ts';
import { searchAll } from './search-all.ts';

// A process of its own, which has nothing of ours open: what it finds is what lies there.
try {
  const order: SearchOrder = JSON.parse(await text(process.stdin));
  process.stdout.write(JSON.stringify(await searchAll(order)));
} catch (error) {
  process.stderr.write(messageOf(error));
  process.exitCode = 1;
}
