import { readFileSync, statSync } from 'node:fs';
import type { z } from 'zod';
import { messageOf, RingneckError } from './errors.ts';

/** A JSON file that other processes may replace: each `read` gives what it holds now, undefined when there is none. */
export interface JsonFile<Content> {
  read(): Content | undefined;
}

/**
 * Nothing is read before it is asked for; a file that does not hold what it should is an error that names it.
 * @param otherwise what can be done about it where there is no copy
 */
export function openJsonFile<Content>(
  path: string,
  content: z.ZodType<Content>,
  otherwise = 'move it away to begin anew',
): JsonFile<Content> {
  let last: { stamp: string; content: Content } | undefined;
  return {
    read() {
      const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
      if (stats === undefined) return undefined;
      const stamp = `${stats.mtimeNs} ${stats.size} ${stats.ino}`;
      if (last?.stamp !== stamp) last = { stamp, content: parse(path, content, otherwise) };
      return last.content;
    },
  };
}

function parse<Content>(path: string, content: z.ZodType<Content>, otherwise: string): Content {
  try {
    return content.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    const reason = error instanceof Error && 'issues' in error ? 'it does not hold what it should' : messageOf(error);
    throw new RingneckError(`${path} cannot be read (${reason}): put it back from a copy, or ${otherwise}.`, 1, {
      cause: error,
    });
  }
}
