import { randomUUID } from 'node:crypto';

/** A number of a JSON text whose digits a JavaScript number would change. Elsewhere than in `writeJson` it is written as that number. */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toJSON(): number {
    return Number(this.text);
  }
}

/** With fewer digits a JavaScript number says what was written. */
const LONG = 16;
/** Nobody outside of this process can write a text that begins so. */
const MARK = `number ${randomUUID()} `;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Like `JSON.parse`, but a number of 16 and more digits that JavaScript would write otherwise comes as `ExactNumber`. In a text nested
 * so deeply that walking it exhausts the stack numbers come as always.
 * @throws SyntaxError
 */
export function parseJson(text: string): unknown {
  const parsed: unknown = JSON.parse(text);
  if (!hasLongNumber(text)) return parsed;
  try {
    return JSON.parse(markNumbers(text), (_, value) =>
      typeof value === 'string' && value.startsWith(MARK) ? new ExactNumber(value.slice(MARK.length)) : value,
    );
  } catch (error) {
    if (error instanceof RangeError) return parsed;
    throw error;
  }
}

/** Like `JSON.stringify` of a value that JSON can hold, with the digits of each `ExactNumber`. */
export function writeJson(value: unknown): string {
  const text = JSON.stringify(value, function (this: Record<string, unknown>, key, plain) {
    const exact = this[key];
    return exact instanceof ExactNumber ? MARK + exact.text : plain;
  });
  return text?.includes(MARK) ? text.replaceAll(MARKED, '$1') : (text ?? 'null');
}

const MARKED = new RegExp(`"${MARK}([^"]*)"`, 'g');

/** Whether a number of so many characters may be there: a run of them lies over one of the places that are looked at. */
function hasLongNumber(text: string): boolean {
  for (let at = LONG - 1; at < text.length; at += LONG) {
    if (!isOfNumber(text.charCodeAt(at))) continue;
    let start = at;
    while (start > 0 && isOfNumber(text.charCodeAt(start - 1))) start--;
    let end = at + 1;
    while (end < text.length && isOfNumber(text.charCodeAt(end))) end++;
    // Behind a quotation mark it is text, as the digits of a night's stages are.
    if (end - start >= LONG && text.charCodeAt(start - 1) !== QUOTATION_MARK) return true;
    while (at + LONG < end) at += LONG;
  }
  return false;
}

const QUOTATION_MARK = 0x22;

/** A digit, `+`, `-`, `.`, `E` or `e`. */
const isOfNumber = (code: number) =>
  (code >= 0x30 && code <= 0x39) || code === 0x2b || code === 0x2d || code === 0x2e || code === 0x45 || code === 0x65;

/** The text with its long numbers as marked texts; what lies within its texts stays. */
function markNumbers(text: string): string {
  const parts: string[] = [];
  for (let from = 0; from < text.length; ) {
    const open = text.indexOf('"', from);
    const end = open < 0 ? text.length : open;
    parts.push(
      text
        .slice(from, end)
        .replace(/[-\d][\d.eE+-]{15,}/g, number =>
          String(Number(number)) !== number && NUMBER.test(number) ? `"${MARK}${number}"` : number,
        ),
    );
    if (open < 0) break;
    from = endOfText(text, open);
    parts.push(text.slice(open, from));
  }
  return parts.join('');
}

/** The place behind the quotation mark that closes a text. */
function endOfText(text: string, open: number): number {
  for (let at = open + 1; ; at++) {
    at = text.indexOf('"', at);
    let slashes = 0;
    while (text[at - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return at + 1;
  }
}
