/** What DuckDB says in several lines, the place among them shown by a caret, as one. */
export function oneLine(message: string): string {
  const lines = message.split('\n');
  const at = lines.findIndex(line => /^LINE \d+: /.test(line));
  const line = lines[at] ?? '';
  const caret = lines[at + 1]?.indexOf('^') ?? -1;
  if (at < 0 || caret < 0) return lines.join(' ');
  const number = Number.parseInt(line.slice('LINE '.length), 10);
  const place = line.slice(caret, caret + 40).trim();
  const rest = [...lines.slice(0, at), ...lines.slice(at + 2)].join(' ').trim();
  return `${rest} (line ${number}, ${place ? `at ${JSON.stringify(place)}` : 'at its end'})`;
}
