import { findHeader } from './retry-after.ts';
import type { ServiceResponse } from './transport.ts';

/** A refusal in the service's own form. What else answers 4xx (a proxy, a firewall, a portal) says nothing about the service. */
export interface Refusal {
  /** What it says, as it came. */
  sentence: string | undefined;
  /** What the first entry of a validation error speaks of. */
  field: string | undefined;
  /** Whether it says that what was to be made is there already. */
  exists: boolean;
}

/** Whether a 401 says that the token has expired: in its sentence, or in its header (RFC 6750). */
export const namesExpiry = ({ status, headers }: Pick<ServiceResponse, 'status' | 'headers'>, { sentence }: Refusal): boolean =>
  status === 401 && [sentence, ...[headers['www-authenticate']].flat()].some(text => EXPIRED.test(text ?? ''));

const EXPIRED = /\bexpire/i;
const JSON_TYPE = /^(application\/json|[\w.-]+\/[\w.-]+\+json)\s*(;|$)/i;
const BEARER = /(^|,\s*)bearer\b/i;
/** In the `type` of a validation error, which is a word for programs. `msg` is for people: it may tell of anything. */
const EXISTS = /^(?!.*no[nt]).*(already|duplicate|conflict|(^|[._ -])(exists|unique)$)/i;
const WORDS = ['detail', 'error', 'message', 'title'] as const;

interface Entry {
  loc: unknown[];
  msg: string;
  type: string;
}

/**
 * Reads a 4xx: JSON (problem+json too), an object that says why by `detail`, `error`, `message` or `title`; of a 422 `detail` is the list
 * of section 7. A 401 may say it by its header instead (RFC 6750). Undefined where it is nothing of that.
 */
export function findRefusal({ status, headers, body }: Pick<ServiceResponse, 'status' | 'headers' | 'body'>): Refusal | undefined {
  const said = JSON_TYPE.test(findHeader(headers, 'content-type')?.trim() ?? '') ? parseObject(body) : undefined;
  if (said) {
    const entries: unknown[] = Array.isArray(said.detail) ? said.detail : [];
    const [first] = entries;
    if (isEntry(first) && entries.every(isEntry)) {
      const { loc, msg } = first;
      const field = loc.at(-1);
      return {
        sentence: `${loc.join('.')}: ${msg}`,
        field: typeof field === 'string' ? field.slice(0, 64) : undefined,
        exists: entries.every(({ type }) => EXISTS.test(type)),
      };
    }
    const word = status === 422 ? undefined : WORDS.map(name => said[name]).find(saysSomething);
    if (word !== undefined) return { sentence: typeof word === 'string' ? word : undefined, field: undefined, exists: status === 409 };
  }
  const challenges = [headers['www-authenticate'] ?? []].flat();
  if (status !== 401 || !challenges.some(challenge => BEARER.test(challenge))) return undefined;
  return { sentence: undefined, field: undefined, exists: false };
}

function parseObject(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function isEntry(value: unknown): value is Entry {
  const { loc, msg, type }: Partial<Record<string, unknown>> = { ...(typeof value === 'object' ? value : undefined) };
  return Array.isArray(loc) && typeof msg === 'string' && typeof type === 'string';
}

const saysSomething = (value: unknown) =>
  typeof value === 'string' ? value.trim() !== '' : typeof value === 'object' && value !== null && Object.keys(value).length > 0;
