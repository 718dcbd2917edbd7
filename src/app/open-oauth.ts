import { NO_CLIENT, type Settings } from '../base/config.ts';
import { RingneckError } from '../base/errors.ts';
import type { OAuthClient } from '../sign-in/oauth.ts';

/** @throws RingneckError where the settings name no client */
export async function openOAuth({ settings }: { settings: Pick<Settings, 'signIn'> }): Promise<OAuthClient> {
  if (!settings.signIn) throw new RingneckError(NO_CLIENT);
  const { OAuthClient } = await import('../sign-in/oauth.ts');
  return new OAuthClient(settings.signIn);
}
