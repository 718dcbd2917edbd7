import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { realPath, writeFileAtomically } from '../../base/files.ts';
import type { Needle } from '../../warehouse/readers/search.ts';
import { containsNeedle } from './search-bytes.ts';

/** What was typed at the prompt of `ringneck sql` may name a person: those lines go. */
export function forgetHistory(folder: string, words: readonly Needle[]): void {
  const path = join(folder, 'sql_history');
  if (!existsSync(path)) return;
  const lines = readFileSync(path, 'utf8').split('\n');
  const kept = lines.filter(line => !words.some(word => containsNeedle(Buffer.from(line), word)));
  if (kept.length < lines.length) writeFileAtomically(realPath(path), kept.join('\n'));
}
