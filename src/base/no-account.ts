import { UsageError } from './errors.ts';
import { ACCESS_COMMANDS } from './sign-in-again.ts';

/** For a name that no account has; names those that there are. */
export function noAccount(name: string, names: readonly string[]): UsageError {
  const known = names.length ? `there ${names.length === 1 ? 'is' : 'are'} ${names.join(', ')}` : `there is none yet: ${ACCESS_COMMANDS}`;
  return new UsageError(`no account ${JSON.stringify(name)}: ${known}`);
}
