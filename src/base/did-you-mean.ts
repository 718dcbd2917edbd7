/** The known word that was probably meant: at most three characters away. */
export function didYouMean(word: string, known: readonly string[]): string | undefined {
  const [nearest] = known.map(to => ({ to, edits: editsBetween(word, to) })).sort((a, b) => a.edits - b.edits);
  return nearest && nearest.edits <= 3 ? nearest.to : undefined;
}

/** How many characters must be added, dropped or replaced to get from one word to the other. */
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [i, character] of [...from].entries()) {
    let left = i + 1;
    let diagonal = i;
    const next = [left];
    for (const [j, above] of row.slice(1).entries()) {
      left = Math.min(above + 1, left + 1, diagonal + (character === to[j] ? 0 : 1));
      diagonal = above;
      next.push(left);
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
