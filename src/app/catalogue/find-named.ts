/** A name as somebody wrote it, as ours are spelled: without capitals, quotes, `main.` and the parameters of a macro. */
export const spellName = (name: string) =>
  name
    .toLowerCase()
    .replace(/^main\./, '')
    .replaceAll('"', '')
    .replace(/\(.*\)$/, '');

/** What bears this name, whatever its capitals; `coverage` finds `sync.coverage`. */
export function findNamed<T extends { name: string }>(all: readonly T[], name: string): T | undefined {
  const wanted = spellName(name);
  return [wanted, `sync.${wanted}`].map(one => all.find(entry => entry.name.toLowerCase() === one)).find(Boolean);
}
