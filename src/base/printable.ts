/** What moves a terminal's cursor, changes its state, or turns the direction of its text; and what would break a line. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
const SHORT: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

const escaped = (character: string) => SHORT[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** One line that does nothing to a terminal but show. */
export const printable = (text: string): string => text.replace(UNPRINTABLE, escaped);

/** The same of several lines. */
export const printableLines = (text: string): string =>
  text.replace(UNPRINTABLE, character => (character === '\n' ? '\n' : escaped(character)));

/** JSON of the same value: its texts hold such characters only escaped. JSON has line breaks and tabs outside of texts alone. */
export const printableJson = (json: string): string =>
  json.replace(UNPRINTABLE, character => ('\n\r\t'.includes(character) ? character : escaped(character)));
