import { isReason, reasonNaming } from '../../reasons.ts';
import { quoteName, quoteText, textList } from '../../sql.ts';
import { has, type Present } from './copy-tables.ts';
import { isObject, type Rewriting, rewriteFile } from './rewrite.ts';

/** Whose rows go: the account, and the ids by which the service's events name the person and nobody else. */
export interface Person {
  userId: string;
  serviceUserIds: readonly string[];
}

/**
 * Replaces a warehouse that nobody has open by a new file of all that is not a person's (see `rewriteFile`).
 * @param beforeTable throws when there is no room on the disk
 * @returns how many rows went, by table
 * @throws TryLaterError naming the process that holds the file
 */
export function rewriteWithout(path: string, person: Person, beforeTable: () => void): Promise<Record<string, number>> {
  return rewriteFile(path, { ...erasingOf(person), beforeTable });
}

/** What is left of a warehouse without a person. */
export function erasingOf(person: Person): Omit<Rewriting, 'beforeTable'> {
  const { userId } = person;
  const keep = (table: Present) => conditionOf(table, person);
  return {
    doing: 'erasing',
    done: 'erased',
    requestHolds: JSON.stringify(userId),
    request: request => requestWithout(request, userId),
    keep,
    replace: ({ name }, column) => (isReason(name, column) ? reasonWithout(quoteName(column), userId) : undefined),
    counted: table => `NOT (${keep(table)})`,
  };
}

/** It stays said that another account is of the same person: whose token it has is not to be read unasked. */
function reasonWithout(column: string, userId: string): string {
  return `regexp_replace(${column}, ${quoteText(reasonNaming(userId))}, ${quoteText('\\1that was erased\\2')}, 'g')`;
}

/** What holds for the rows that stay; never NULL. */
function conditionOf(table: Present, { userId, serviceUserIds }: Person): string {
  const conditions = ['true'];
  // A table of others may compare it otherwise: ADA is another person.
  if (has(table, 'user_id')) conditions.push(`user_id::VARCHAR COLLATE "C" IS DISTINCT FROM ${quoteText(userId)}`);
  if (has(table, 'service_user_id') && serviceUserIds.length) {
    conditions.push(`coalesce(service_user_id::VARCHAR COLLATE "C" NOT IN (${textList(serviceUserIds)}), true)`);
  }
  return conditions.join(' AND ');
}

/**
 * What a run was asked for, without a person; undefined when nobody else was asked. A person is named in lists of users, and by the
 * `user_id` or `userId` of an object in a list.
 */
export function requestWithout(request: unknown, userId: string): unknown {
  if (!isObject(request)) return request;
  const { users } = request;
  if (Array.isArray(users) && users.length > 0 && users.every(user => user === userId)) return undefined;
  return without(request, userId);
}

function without(value: unknown, userId: string): unknown {
  if (Array.isArray(value)) return value.filter(item => !isTheirs(item, userId)).map(item => without(item, userId));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      if (key === 'users' && Array.isArray(item)) return [key, item.filter(user => user !== userId)];
      return [key, without(item, userId)];
    }),
  );
}

function isTheirs(item: unknown, userId: string): boolean {
  return isObject(item) && (item.user_id === userId || item.userId === userId);
}
