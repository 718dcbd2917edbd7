/** The same function with its latest results kept, at most `limit` of them. For pure functions of a number. */
export function memoize<T>(limit: number, make: (key: number) => T): (key: number) => T {
  const kept = new Map<number, T>();
  return key => {
    const found = kept.get(key);
    if (found !== undefined) {
      kept.delete(key);
      kept.set(key, found);
      return found;
    }
    const made = make(key);
    kept.set(key, made);
    if (kept.size > limit) {
      const [oldest = key] = kept.keys();
      kept.delete(oldest);
    }
    return made;
  };
}
