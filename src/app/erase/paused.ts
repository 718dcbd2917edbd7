import { messageOf } from '../../base/errors.ts';
import { isRedisError } from '../../queue/environment-errors.ts';
import type { AppOptions, PausedErasing } from '../app-options.ts';
import { isErasing } from './is-erasing.ts';
import { readMarker } from './marker.ts';

/**
 * An erasing that could not be finished for want of Redis, where events may be accepted meanwhile.
 * @throws the error where it is another one, and where nobody knows whose events are not to be kept
 */
export function findPaused(
  { settings, acceptsWhileErasing }: Pick<AppOptions, 'settings' | 'acceptsWhileErasing'>,
  error: unknown,
): PausedErasing {
  if (!acceptsWhileErasing || !settings.queueUrl || !isRedisError(error) || !isErasing(settings.data)) throw error;
  const { serviceUserIds } = readMarker(settings.data);
  if (!serviceUserIds) throw error;
  return { serviceUserIds, reason: messageOf(error) };
}
