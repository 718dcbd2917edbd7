/** A token has at most this many characters; more is a wrong file. */
const MAX_TOKEN = 8_192;

/** What a text must be to be a token. */
export const TOKEN_FORM = `one word of printable ASCII, at most ${MAX_TOKEN} characters`;

export const isToken = (text: string): boolean => text.length <= MAX_TOKEN && /^[\x21-\x7e]+$/.test(text);
