import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { writeFileAtomically } from '../base/files.ts';
import { openJsonFile } from '../base/json-file.ts';

export interface ControlSecret {
  /** There only when it was made just now. */
  secret: string | null;
  isIt(given: string): boolean;
}

const hashOf = (secret: string) => createHash('sha256').update(secret).digest();

/** The secret of the control route: made at the first start, or anew when asked for. Only its hash is kept, in `control.json`. */
export function openControlSecret(folder: string, renew: boolean): ControlSecret {
  const path = join(folder, 'control.json');
  const stored = renew ? undefined : openJsonFile(path, z.object({ format: z.literal(1), hash: z.base64() })).read();
  const secret = stored ? null : `rc_${randomBytes(32).toString('base64url')}`;
  const hash = secret === null ? Buffer.from(stored?.hash ?? '', 'base64') : hashOf(secret);
  if (secret !== null) writeFileAtomically(path, `${JSON.stringify({ format: 1, hash: hash.toString('base64') })}\n`);
  return { secret, isIt: given => hash.length === 32 && timingSafeEqual(hashOf(given), hash) };
}
