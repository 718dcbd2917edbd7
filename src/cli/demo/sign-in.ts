import type { AppCommands } from '../../app/commands.ts';
import { RingneckError } from '../../base/errors.ts';
import { loginCommand } from '../../base/sign-in-again.ts';
import { askToSignIn } from '../../sign-in/login.ts';

const PATIENCE_MS = 30_000;

/** Has a person sign in at the demo's service, as `account login` does, and allow all that is asked for. */
export async function signIn(
  commands: Pick<AppCommands, 'beginLogin' | 'finishLogin'>,
  { name, user_id: person }: { name: string; user_id: string },
  signal: AbortSignal,
): Promise<void> {
  const settings = await commands.beginLogin({ name });
  const answer = await askToSignIn({
    settings,
    again: loginCommand(name),
    open: undefined,
    listens: false,
    paste: url => fillIn(url, person),
    timeoutMs: PATIENCE_MS,
    signal,
  });
  const { state, reason, warning } = await commands.finishLogin({ name, ...answer, redirectUrl: settings.redirectUrl });
  if (state !== 'active') throw new RingneckError(`${name} could not sign in: ${reason ?? warning ?? state}`);
}

/** Does what a browser does with the page, and gives the address to which it is sent then. */
async function fillIn(url: string, person: string): Promise<string> {
  const { origin, pathname, searchParams: form } = new URL(url);
  for (const scope of form.get('scope')?.split(' ') ?? []) form.append('grant', scope);
  form.append('person', person);
  form.append('decision', 'allow');
  const answer = await fetch(origin + pathname, { method: 'POST', body: form, redirect: 'manual' });
  return answer.headers.get('location') ?? '';
}
