const SIDE_BY_SIDE = 4;

/** Works through items, some at a time. The first failure stops the rest and is thrown once those under way have ended. */
export async function forEachConcurrent<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const left = items.values();
  let stopped = false;
  const worker = async () => {
    for (const item of left) {
      if (stopped) return;
      try {
        await work(item);
      } catch (error) {
        stopped = true;
        throw error;
      }
    }
  };
  // All are waited for: what one of them has made must be committed.
  const ended = await Promise.allSettled(Array.from({ length: SIDE_BY_SIDE }, worker));
  for (const end of ended) if (end.status === 'rejected') throw end.reason;
}
