import { UsageError } from '../base/errors.ts';

/** Host and port, without user and password. */
export function addressOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol !== 'redis:' && parsed?.protocol !== 'rediss:') {
    throw new UsageError('RINGNECK_QUEUE_URL must be like redis://host:6379 or rediss://user:password@host:6379');
  }
  return `${parsed.hostname || 'localhost'}:${parsed.port || 6379}`;
}
