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

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);
