/** The known word that was probably meant: at most three characters away. */
export function didYouMean(word: string, known: readonly string[]): string | undefined {
  const [nearest] = known.map(to => ({ to, edits: editsBetween(word, to) })).sort((a, b) => a.edits - b.edits);
  return nearest && nearest.edits <= 3 ? nearest.to : undefined;
}

/** How many characters must be added, dropped or replaced to get from one word to the other. */
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[to.length]!;
}
