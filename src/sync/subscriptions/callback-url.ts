import { createHash } from 'node:crypto';

/** Whether an address is that of our callback. */
export const isOurs = ({ callbackUrl }: { callbackUrl: string }, remote: string): boolean =>
  URL.canParse(remote) && new URL(remote).href === callbackUrl;

/** An address without its query, where a secret may be. */
export const withoutQuery = (url: string): string => url.replace(/[?#].*/s, '');

/** An address as the table has it: a query is told from others, but not told. */
export function concealQuery(url: string): string {
  const { href, search } = new URL(url);
  return search ? `${withoutQuery(href)}?${createHash('sha256').update(search).digest('hex').slice(0, 8)}` : href;
}
