import { until } from './until.ts';

/** Fills in the page of the sandbox as a person does, and gives the address to which the browser is sent then. */
export async function fillIn(url: string, person: string, unticked: readonly string[] = []): Promise<string> {
  const html = await (await fetch(url)).text();
  const form = new URLSearchParams();
  for (const [, name = '', value = ''] of html.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g))
    form.append(name, value.replaceAll('&amp;', '&'));
  for (const [, scope = ''] of html.matchAll(/name="grant" value="([^"]+)" checked/g))
    if (!unticked.includes(scope)) form.append('grant', scope);
  form.set('person', new RegExp(`<option value="([^"]+)">${person}</option>`).exec(html)?.[1] ?? '');
  form.set('decision', 'allow');
  const action = new URL(/<form method="post" action="([^"]+)">/.exec(html)?.[1] ?? '', url);
  const answer = await fetch(action, { method: 'POST', body: form, redirect: 'manual', headers: { origin: action.origin } });
  return answer.headers.get('location') ?? `it answered ${answer.status}`;
}

/** Whoever sits before `account login --no-browser`: opens the address, allows all but what is unticked, and pastes where the browser was sent. */
export const personAt =
  (person: string, unticked: readonly string[] = []) =>
  async (said: { readonly stderr: string }) => {
    await until('the address is shown', () => /^http\S+$/m.test(said.stderr));
    return `${await fillIn(/^http\S+$/m.exec(said.stderr)?.[0] ?? '', person, unticked)}\n`;
  };
