import type { SignInSettings } from '../../base/config.ts';
import { withDetail } from '../../base/errors.ts';
import { findKnownClient, OAuthClient } from '../../sign-in/oauth.ts';
import { type CheckResult, fail, ok, warn } from './check-result.ts';

/** Whether the service takes the client with which people sign in; where it does not, which half of it is wrong. */
export async function checkClient(settings: SignInSettings): Promise<CheckResult[]> {
  const { tokenUrl, clientId } = settings;
  const tried = await new OAuthClient(settings).tryClient(settings.redirectUrl);
  if (tried.is === 'taken') return [ok('client', `${tokenUrl} takes the client`)];
  if (tried.is === 'untold') {
    return [warn('client', `it is not known whether the service takes the client: ${tried.why}`, 'ringneck account login tries it')];
  }
  const refused = (what: string, fix: string) => [fail('client', withDetail(`${tokenUrl} refuses the client: ${what}`, tried.said), fix)];
  const known = await findKnownClient(settings);
  if (known === 'known')
    return refused(`${clientId} is known there, and the secret is wrong`, 'copy the secret again, or have another one made there');
  if (known === 'unknown') return refused(`the service knows no client ${clientId}`, 'copy the id as the service shows it');
  return refused('the id or the secret is wrong', 'copy both as the service shows them');
}
