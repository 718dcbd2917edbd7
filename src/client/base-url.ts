import { UsageError } from '../base/errors.ts';

/** Where the service is: the origin to connect to, and the path that precedes every route (no slash at its end). */
export interface ServiceAddress {
  origin: string;
  path: string;
}

/** Reads RINGNECK_SERVICE_URL. What is wrong with it is said without repeating it, since it may hold a password. */
export function parseBaseUrl(text: string): ServiceAddress {
  if (!URL.canParse(text)) throw new UsageError('RINGNECK_SERVICE_URL is not a URL; it looks like https://api.example.com');
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new UsageError(`RINGNECK_SERVICE_URL begins with ${url.protocol}; only http: and https: can be asked`);
  }
  if (url.username || url.password) {
    throw new UsageError('RINGNECK_SERVICE_URL holds a user name or password; tokens belong to accounts (ringneck account add)');
  }
  if (url.search || url.hash) throw new UsageError('RINGNECK_SERVICE_URL holds a query or fragment; it ends with a host or a path');
  return { origin: url.origin, path: url.pathname.replace(/\/+$/, '') };
}

/** Checks a path that a setting names, as RINGNECK_HEART_RATE_PATH does. */
export function parsePath(text: string, setting: string): string {
  if (!/^\/[\x21-\x7e]*$/.test(text) || /[?#]/.test(text)) {
    throw new UsageError(`${setting} is not a path: ${text}; it begins with / and has neither query nor fragment`);
  }
  return text;
}

/**
 * Whether an identifier can be the last part of a path. Encoded, it may be anything but what every reader of URLs takes for a step: `%2E%2E`
 * climbs as `..` does.
 */
export const isAskable = (id: string): boolean => id !== '' && id !== '.' && id !== '..' && id.isWellFormed();
