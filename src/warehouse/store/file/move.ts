import { isReason, reasonNaming } from '../../reasons.ts';
import { quoteName, quoteText } from '../../sql.ts';
import { has } from './copy-tables.ts';
import { isObject, type Rewriting, rewriteFile } from './rewrite.ts';

/** An account's name, and the one that it gets. */
export interface Renaming {
  from: string;
  to: string;
}

/**
 * Replaces a warehouse that nobody has open by a new file in which an account has another name (see `rewriteFile`): in each column `user_id`,
 * in requests of runs, and in the commands that reasons end with.
 * @param beforeTable throws when there is no room on the disk
 * @returns how many rows are the account's, by table
 * @throws TryLaterError naming the process that holds the file
 */
export function rewriteRenamed(path: string, renaming: Renaming, beforeTable: () => void): Promise<Record<string, number>> {
  return rewriteFile(path, { ...renamingOf(renaming), beforeTable });
}

/** What a warehouse is in which an account has another name. */
export function renamingOf(renaming: Renaming): Omit<Rewriting, 'beforeTable'> {
  const { from } = renaming;
  // A table of others may compare it otherwise: ADA is another name.
  const isTheirs = `user_id::VARCHAR COLLATE "C" IS NOT DISTINCT FROM ${quoteText(from)}`;
  return {
    doing: 'moving',
    done: 'moved',
    requestHolds: JSON.stringify(from),
    request: request => requestRenamed(request, renaming),
    keep: () => 'true',
    counted: table => (has(table, 'user_id') ? isTheirs : 'false'),
    replace: (table, column) => {
      const name = quoteName(column);
      // As text: a table of others may have another type, into which it is cast again.
      if (column.toLowerCase() === 'user_id') return `CASE WHEN ${isTheirs} THEN ${quoteText(renaming.to)} ELSE ${name}::VARCHAR END`;
      return isReason(table.name, column) ? reasonRenamed(name, renaming) : undefined;
    },
  };
}

function reasonRenamed(column: string, { from, to }: Renaming): string {
  const pattern = reasonNaming(from);
  return `regexp_replace(${column}, ${quoteText(pattern)}, ${quoteText(`\\1${to}\\2`)}, 'g')`;
}

/** What a run was asked for, of a person by another name: in lists of users, and in the `user_id` or `userId` of an object. */
export function requestRenamed(value: unknown, renaming: Renaming): unknown {
  const { from, to } = renaming;
  const renamed = (item: unknown) => (item === from ? to : item);
  if (Array.isArray(value)) return value.map(item => requestRenamed(item, renaming));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      if (key === 'users' && Array.isArray(item)) return [key, item.map(renamed)];
      if (key === 'user_id' || key === 'userId') return [key, renamed(item)];
      return [key, requestRenamed(item, renaming)];
    }),
  );
}
