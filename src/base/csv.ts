import { UsageError } from './errors.ts';

/** One record of a CSV file, and the line on which it begins. */
export interface CsvRecord {
  line: number;
  fields: readonly string[];
}

/**
 * Reads CSV (RFC 4180). The separator is what the first line has most of: commas, semicolons (as spreadsheets write them where the comma is
 * the decimal sign) or tabs. Lines without anything are passed over.
 * @param name what the text is called in an error
 * @throws UsageError naming the line whose quotes are wrong
 */
export function parseCsv(content: string, name: string): CsvRecord[] {
  // A spreadsheet may name the separator in a line of its own.
  const [said = '', named] = /^\ufeff?(?:sep=(.)\r?\n)?/.exec(content) ?? [];
  const text = content.slice(said.length);
  const separator = named ?? findSeparator(text);
  const records: CsvRecord[] = [];
  let line = named === undefined ? 1 : 2;
  for (let at = 0; at < text.length; ) {
    const begin = line;
    const fields: string[] = [];
    for (let isLast = false; !isLast; ) {
      const { field, end } = readField(text, at, separator, `${name}, line ${line}`);
      fields.push(field);
      line += field.match(BREAK)?.length ?? 0;
      isLast = text[end] !== separator;
      at = end + (isLast && text.startsWith('\r\n', end) ? 2 : 1);
    }
    line++;
    if (fields.some(field => field !== '')) records.push({ line: begin, fields });
  }
  return records;
}

const BREAK = /\r\n|\n|\r/g;

function findSeparator(text: string): string {
  const first = /^[\r\n]*((?:"[^"]*"|[^"\r\n]+)*)/.exec(text)?.[1]?.replace(/"[^"]*"/g, '') ?? '';
  const count = (separator: string) => first.split(separator).length;
  return [',', ';', '\t'].reduce((most, separator) => (count(separator) > count(most) ? separator : most));
}

/** @returns the field, and where what follows it stands: a separator, a line break, or the end */
function readField(text: string, at: number, separator: string, where: string): { field: string; end: number } {
  const ends = (place: number) => place >= text.length || text[place] === separator || text[place] === '\n' || text[place] === '\r';
  if (text[at] !== '"') {
    let end = at;
    while (!ends(end) && text[end] !== '"') end++;
    if (text[end] === '"') throw new UsageError(`${where}: a quote within a field: put the whole field in quotes, and double that one`);
    return { field: text.slice(at, end), end };
  }
  let close = text.indexOf('"', at + 1);
  while (close >= 0 && text[close + 1] === '"') close = text.indexOf('"', close + 2);
  if (close < 0) throw new UsageError(`${where}: a field begins with a quote that nothing ends`);
  if (!ends(close + 1)) throw new UsageError(`${where}: something follows the end of a field in quotes: double a quote within it`);
  return { field: text.slice(at + 1, close).replaceAll('""', '"'), end: close + 1 };
}

/** A field as RFC 4180 writes it; null is nothing, an empty text is "". */
export function csvField(text: string | null): string {
  if (text === null) return '';
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
