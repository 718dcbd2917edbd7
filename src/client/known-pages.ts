import { createHmac } from 'node:crypto';

/** How far before its end an answer names the next page, where that can be read without parsing the whole. */
const TAIL_BYTES = 4096;

/** Tells an answer from all others, in 96 bits; of what was in it, only to who has the key. */
export type Digest = (bytes: Buffer) => string;

/** @param findKey is called when the first answer is to be told from others */
export function createDigest(findKey: () => string): Digest {
  let key: string | undefined;
  return bytes => {
    key ??= findKey();
    return createHmac('sha1', key).update(bytes).digest('base64').slice(0, 16);
  };
}

/** The `next_token` of an envelope whose last member that is; undefined of any other. Of bytes that are no JSON it says nothing. */
export function findLastToken(bytes: Buffer): string | null | undefined {
  const tail = bytes.subarray(-TAIL_BYTES).toString();
  const at = tail.lastIndexOf('"next_token"');
  if (at < 0) return undefined;
  try {
    const { next_token: token, ...others }: Record<string, unknown> = JSON.parse(`{${tail.slice(at)}`);
    return Object.keys(others).length === 0 && (token === null || typeof token === 'string') ? token : undefined;
  } catch {
    return undefined;
  }
}
