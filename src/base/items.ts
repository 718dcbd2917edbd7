/** Items that belong together: there is always one. */
export type Group<T> = [T, ...T[]];

/** Items by a key, keys and items in the order in which they come. */
export function groupBy<T>(items: Iterable<T>, keyOf: (item: T) => string): Map<string, Group<T>> {
  const groups = new Map<string, Group<T>>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

/** @throws RangeError where there is none */
export function itemAt<T>(items: ArrayLike<T>, index: number): T {
  const item = items[index];
  if (item === undefined) throw new RangeError(`no item ${index} of ${items.length}`);
  return item;
}

/** The first of them by name, and how many more there are. */
export const listShort = (names: readonly string[], most: number): string =>
  names.length > most ? `${names.slice(0, most).join(', ')} and ${names.length - most} more` : names.join(', ');
