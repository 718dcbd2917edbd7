import { Secrets } from '../../base/secrets/secrets.ts';
import type { FolderOptions } from '../rewriting.ts';
import { OTHERS, revokeSignIn, waitAWhile } from '../take-back.ts';

/** Of whom the sign-ins are taken back. */
interface Erased {
  name: string;
  /** Whether what the account is read with is known to be of another person. */
  isOfAnother: boolean;
  /** The accounts that stay and are read. */
  readers: readonly string[];
}

/**
 * Takes back at the service what somebody has signed in with, for as long as an erasing waits for it. Killed at any moment, whoever finishes
 * the erasing does it: what the service gives for that meanwhile is kept with what has ended, until all of it is forgotten.
 * @returns `isLeft`: not known to be taken back, and nobody tries it again; `endKeeping` ends that keeping
 */
export async function takeBackErased(
  { settings, log, now = Date.now, ofErased }: FolderOptions,
  { name, isOfAnother, readers }: Erased,
): Promise<{ isLeft: boolean; endKeeping: () => void }> {
  const secrets = new Secrets({ folder: settings.data, key: settings.secretKey, address: settings.serviceUrl });
  if (isOfAnother && secrets.hasSignIn(name)) log.warn({ account: name }, `a sign-in was not taken back at the service: ${OTHERS}`);
  if (isOfAnother) secrets.remove(name);
  else secrets.end(name, now());
  let isKept = true;
  const taken = await Promise.all(
    secrets
      .listEnded()
      .filter(ended => ended.name === name)
      .map(async ended => {
        const { signIn } = ended;
        if (!signIn) {
          log.warn({ account: name }, 'a sign-in of who is erased cannot be taken back at the service: its person can do that there');
          return undefined;
        }
        const keep = (renewed: typeof signIn) => {
          if (isKept) secrets.renewEnded(ended, renewed);
        };
        const revoking = revokeSignIn({ settings, log, secrets, now, readers, keep }, { name, reason: null }, signIn);
        return waitAWhile({ log }, name, ofErased?.add(revoking) ?? revoking);
      }),
  );
  const endKeeping = () => {
    isKept = false;
  };
  return { isLeft: taken.some(revoked => revoked === undefined || revoked === 'failed'), endKeeping };
}
