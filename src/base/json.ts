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
 * Like `JSON.parse`, but a number of 16 and more digits that JavaScript would write otherwise comes as `ExactNumber`, and so does one that is
 * too large or too small for it, however deeply it is nested.
 * @throws SyntaxError
 */
export function parseJson(text: string): unknown {
  const parsed: unknown = JSON.parse(text);
  const isFar = FAR.test(text);
  if (!isFar && !hasLongNumber(text)) return parsed;
  const long = markNumbers(text, findLongRun, number => String(Number(number)) !== number);
  const far = isFar ? markNumbers(long.marked, findFarNumber, isBeyond) : { marked: long.marked, marks: 0 };
  const { marked } = far;
  const marks = long.marks + far.marks;
  return marks === 0 ? parsed : withExact(JSON.parse(marked), marks);
}

/**
 * The value with its marked texts as numbers; no further than the last. A function for each value, as `JSON.parse` takes one, is slow, and
 * the call stack is not deep enough for what a text may nest.
 */
function withExact(value: unknown, marks: number): unknown {
  const all: Record<string, unknown> = { value };
  const open: object[] = [all];
  let left = marks;
  const exactOf = (text: string) => {
    if (!text.startsWith(MARK)) return text;
    left--;
    return new ExactNumber(text.slice(MARK.length));
  };
  for (let holder = open.pop(); holder && left > 0; holder = open.pop()) {
    if (Array.isArray(holder)) {
      for (let index = 0; index < holder.length; index++) {
        const item = holder[index];
        if (typeof item === 'string') holder[index] = exactOf(item);
        else if (typeof item === 'object' && item !== null) open.push(item);
      }
    } else {
      const members = holder as Record<string, unknown>;
      for (const key in members) {
        const member = members[key];
        if (typeof member === 'string') members[key] = exactOf(member);
        else if (typeof member === 'object' && member !== null) open.push(member);
      }
    }
  }
  return all.value;
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

/** Whether a number of so many characters may be there. */
function hasLongNumber(text: string): boolean {
  for (let run = findLongRun(text, 0, text.length); run; run = findLongRun(text, run.end, text.length)) {
    // Behind a quotation mark it is text, as the digits of a night's stages are.
    if (text.charCodeAt(run.start - 1) !== QUOTATION_MARK) return true;
  }
  return false;
}

/** The next 16 and more characters in a row that a number may have: they lie over one of the places that are looked at. */
function findLongRun(text: string, from: number, to: number): { start: number; end: number } | undefined {
  for (let at = from + LONG - 1; at < to; ) {
    // Whatever lies before a character that no number has is no part of a run that ends behind it. Most end soon.
    const gap = lastGap(text, at);
    if (gap !== undefined) {
      at += LONG - gap;
      continue;
    }
    let start = at;
    while (start > from && isOfNumber(text.charCodeAt(start - 1))) start--;
    let end = at + 1;
    while (end < to && isOfNumber(text.charCodeAt(end))) end++;
    if (end - start >= LONG) return { start, end };
    at = end - 1 + LONG;
  }
  return undefined;
}

/** How far before the end of so many characters one of four that are looked at is none of a number; undefined where all may be. */
function lastGap(text: string, end: number): number | undefined {
  if (!isOfNumber(text.charCodeAt(end))) return 0;
  if (!isOfNumber(text.charCodeAt(end - 8))) return 8;
  if (!isOfNumber(text.charCodeAt(end - 4))) return 4;
  if (!isOfNumber(text.charCodeAt(end - 12))) return 12;
  return undefined;
}

const QUOTATION_MARK = 0x22;

/** A digit, `+`, `-`, `.`, `E` or `e`. */
const isOfNumber = (code: number) =>
  (code >= 0x30 && code <= 0x39) || code === 0x2b || code === 0x2d || code === 0x2e || code === 0x45 || code === 0x65;

/** The end of a number whose exponent has three digits and more: however short, it may be beyond what JavaScript has. */
const FAR = /[eE][+-]?\d{3,}(?:[\s,\]}]|$)/;

type FindRun = (text: string, from: number, to: number) => { start: number; end: number } | undefined;

const findFarNumber: FindRun = (text, from, to) => {
  const found = /-?\d[\d.]*[eE][+-]?\d{3,}/.exec(text.slice(from, to));
  return found ? { start: from + found.index, end: from + found.index + found[0].length } : undefined;
};

const SMALLEST_EXACT = 2 ** -1022;

/** Whether a number becomes infinite, 0, or one of the smallest, which have fewer digits. */
function isBeyond(number: string): boolean {
  const value = Math.abs(Number(number));
  return value === Number.POSITIVE_INFINITY || value < SMALLEST_EXACT;
}

/** The text with the numbers that are found, and that would change, as marked texts, and how many they are; what lies within its texts stays. */
function markNumbers(text: string, find: FindRun, wouldChange: (number: string) => boolean): { marked: string; marks: number } {
  const parts: string[] = [];
  let marks = 0;
  let copied = 0;
  for (let from = 0; from < text.length; ) {
    const open = text.indexOf('"', from);
    const end = open < 0 ? text.length : open;
    for (let run = find(text, from, end); run; run = find(text, run.end, end)) {
      const number = text.slice(run.start, run.end);
      if (!wouldChange(number) || !NUMBER.test(number)) continue;
      parts.push(text.slice(copied, run.start), `"${MARK}${number}"`);
      copied = run.end;
      marks++;
    }
    if (open < 0) break;
    from = endOfText(text, open);
  }
  parts.push(text.slice(copied));
  return { marked: parts.join(''), marks };
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
