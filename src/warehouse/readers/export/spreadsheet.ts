/** Their text begins with a digit, a minus, or a letter of our choice: it is never a formula. */
export const PLAIN = /^(U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|FLOAT|DOUBLE|DECIMAL\(.*\)|BOOLEAN|DATE|TIME|TIMESTAMP.*)$/;

/** With these a spreadsheet begins a formula; the wide ones in East Asian settings. The apostrophe, so that what we add can be taken away. */
export const FORMULA = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠', "'"];

/**
 * Text that reads as a number. A spreadsheet, and DuckDB when it guesses the types of a file, make one of it: of the stages of a night only
 * the first 15 digits stay, of classes that begin with 0 not even these, and a version becomes a date. Whole numbers that stay as they are
 * need nothing.
 */
export const NUMBER = String.raw`\s*[.,]*[0-9][0-9.,]*([eE][+-]?[0-9]+)?\s*`;
export const KEPT_NUMBER = '0|[1-9][0-9]{0,14}';

/** The first thing in the file, by which spreadsheets know its encoding. */
export const BYTE_ORDER_MARK = '\ufeff';

/** A name of a column, with an apostrophe before what a spreadsheet would take for a formula. */
export const markName = (name: string): string => (FORMULA.includes(name.charAt(0)) ? `'${name}` : name);

/** A value, with an apostrophe before what a spreadsheet would take for a formula, or for a number that it would change. */
export const markText = (text: string): string => (FORMULA.includes(text.charAt(0)) || isChangedNumber(text) ? `'${text}` : text);

const LIKE_NUMBER = new RegExp(`^(?:${NUMBER})$`);
const KEPT = new RegExp(`^(?:${KEPT_NUMBER})$`);
const isChangedNumber = (text: string) => LIKE_NUMBER.test(text) && !KEPT.test(text);
