import { isUtf8 } from 'node:buffer';
import { closeSync, openSync, readSync } from 'node:fs';
import { type Needle, SHORTEST_INSIDE } from '../../warehouse/readers/search.ts';

const PART_BYTES = 4 * 1024 * 1024;

/** Which of the words a file holds, in its bytes as they are; of one that is no text, perhaps compressed, that says little. */
export function searchFile(path: string, words: readonly Needle[]): { found: Needle['what'][]; isText: boolean } {
  const file = openSync(path, 'r');
  try {
    const found = new Set<Needle>();
    // Each part begins with the end of the one before: a word may lie across.
    const overlap = Math.max(0, ...words.map(({ text }) => 3 * Buffer.byteLength(text))) + 8;
    const buffer = Buffer.alloc(PART_BYTES + overlap);
    let kept = 0;
    let isText: boolean | undefined;
    for (;;) {
      const read = readSync(file, buffer, kept, PART_BYTES, null);
      if (read === 0) break;
      const part = buffer.subarray(0, kept + read);
      isText ??= isTextual(part);
      for (const word of words) {
        if (!found.has(word) && (isText || isLong(word)) && containsNeedle(part, word)) found.add(word);
      }
      kept = Math.min(overlap, part.length);
      part.copyWithin(0, part.length - kept);
    }
    return { found: [...new Set([...found].map(({ what }) => what))], isText: isText ?? true };
  } finally {
    closeSync(file);
  }
}

/** At the end a character may be cut. */
const isTextual = (part: Buffer) => !part.includes(0) && [0, 1, 2, 3].some(cut => isUtf8(part.subarray(0, part.length - cut)));

/** Among the bytes of a database a short word is there by chance. */
const isLong = ({ text }: Needle) => text.length >= SHORTEST_INSIDE;

/** Whether bytes hold a word: itself, or as it is written in JSON; a token also as base64 and as a part of something longer. */
export function containsNeedle(bytes: Buffer, { what, text }: Needle): boolean {
  if (what === 'token') return spellingsOf(text).some(spelling => bytes.includes(spelling));
  return [text, JSON.stringify(text).slice(1, -1)].some(spelling => containsWhole(bytes, Buffer.from(spelling)));
}

function containsWhole(bytes: Buffer, text: Buffer): boolean {
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) {
    if (!isOfName(bytes[at - 1]) && !isOfName(bytes[at + text.length])) return true;
  }
  return false;
}

/** What account names are made of. */
const isOfName = (byte: number | undefined) => byte !== undefined && /[A-Za-z0-9._-]/.test(String.fromCharCode(byte));

function spellingsOf(text: string): Buffer[] {
  const spellings = new Set([text, JSON.stringify(text).slice(1, -1)]);
  // Base64 looks different at each of three places; the characters at its ends hold bits of the neighbours.
  for (const before of [0, 1, 2]) {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(text)]);
    const start = Math.ceil((before * 8) / 6);
    const end = Math.floor((bytes.length * 8) / 6);
    for (const encoding of ['base64', 'base64url'] as const) spellings.add(bytes.toString(encoding).slice(start, end));
  }
  return [...spellings].map(spelling => Buffer.from(spelling));
}
