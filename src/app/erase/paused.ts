import { messageOf } from '../../base/errors.ts';
import { isOfRedis } from '../../queue/machine.ts';
import type { OwnerOptions, PausedErasing } from '../app-options.ts';
import { isErasing } from './is-erasing.ts';
import { readMarker } from './marker.ts';

/**
 * An erasing that could not be finished for want of Redis, where events may be accepted meanwhile.
 * @throws the error where it is another one, and where nobody knows whose events are not to be kept
 */
export function findPaused(
  { settings, acceptsWhileErasing }: Pick<OwnerOptions, 'settings' | 'acceptsWhileErasing'>,
  error: unknown,
): PausedErasing {
  if (!acceptsWhileErasing || !settings.queueUrl || !isOfRedis(error) || !isErasing(settings.data)) throw error;
  const { serviceUserIds } = readMarker(settings.data);
  if (!serviceUserIds) throw error;
  return { serviceUserIds, reason: messageOf(error) };
}
