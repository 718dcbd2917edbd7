import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { messageOf } from '../../base/errors.ts';
import { realPath, writeFileAtomically } from '../../base/files.ts';
import { note } from '../terminal/note.ts';

export const HISTORY_LINES = 1_000;

export interface History {
  /** The newest first, as node:readline wants them. */
  readonly lines: string[];
  /** Puts an entry first; one that is there already moves. */
  add(entry: string): void;
}

/**
 * What was typed, one entry a line, in a file for its owner only. Prompts side by side add to one file. Where the file cannot be read or
 * written (somebody else's folder, a full disk) it is kept in memory only, and said once.
 */
export function openHistory(path: string): History {
  let isKept = true;
  const keeping = (work: () => void) => {
    if (!isKept) return;
    try {
      work();
    } catch (error) {
      isKept = false;
      note(`what is typed is not kept for the next time: ${messageOf(error)}`);
    }
  };
  let lines: string[] = [];
  keeping(() => {
    if (existsSync(path)) lines = readFileSync(path, 'utf8').split('\n').filter(Boolean);
    if (lines.length <= HISTORY_LINES) return;
    lines = lines.slice(-HISTORY_LINES);
    writeFileAtomically(realPath(path), `${lines.join('\n')}\n`);
  });
  const newest = [...new Set(lines.reverse())];
  return {
    lines: newest,
    add(entry) {
      const known = newest.indexOf(entry);
      if (known === 0) return;
      if (known > 0) newest.splice(known, 1);
      newest.unshift(entry);
      newest.splice(HISTORY_LINES);
      keeping(() => appendFileSync(path, `${entry}\n`, { mode: 0o600 }));
    },
  };
}
