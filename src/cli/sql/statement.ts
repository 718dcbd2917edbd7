/** What of SQL may hold a `;` that ends nothing, and what may be the whole of such a part; an opened one reaches to the end of the text. */
const PARTS: readonly RegExp[] = [
  /--[^\n]*/y,
  /\/\*[\s\S]*?(\*\/|$)/y,
  /[eE]'(?:[^'\\]|\\[\s\S]|'')*('|$)/y,
  /'(?:[^']|'')*('|$)/y,
  /"(?:[^"]|"")*("|$)/y,
  /\$([A-Za-z_]\w*)?\$[\s\S]*?(\$\1\$|$)/y,
  /[A-Za-z_][\w$]*/y,
];

/** Whether the text is complete: the last thing in it, but for remarks, is a `;`. */
export function isComplete(text: string): boolean {
  let complete = false;
  for (let at = 0; at < text.length; ) {
    const end = endOfPart(text, at);
    const part = text.slice(at, end);
    // A remark that is still open goes on in the next line, so it is no remark yet.
    if (!/^(\s|--|\/\*[\s\S]*\*\/$)/.test(part)) complete = part === ';';
    at = end;
  }
  return complete;
}

/** Whether the text says the same with its lines in one: a remark would reach further, and a quoted text would lose its line breaks. */
export function isJoinable(text: string): boolean {
  for (let at = 0; at < text.length; ) {
    const end = endOfPart(text, at);
    const part = text.slice(at, end);
    if (part.startsWith('--') || (part !== '\n' && part.includes('\n'))) return false;
    at = end;
  }
  return true;
}

function endOfPart(text: string, at: number): number {
  for (const part of PARTS) {
    part.lastIndex = at;
    if (part.test(text)) return part.lastIndex;
  }
  return at + 1;
}
