import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startAuthorizationServer } from '../sign-in/authorization-server.ts';
import { startFaultService } from '../support/fault-service.ts';
import { runHere } from '../support/run-here.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const folder = tempFolder();

async function set(name: string) {
  const server = await startAuthorizationServer({ lifeS: 86_400 });
  const service = await startFaultService({
    '/v2/usercollection/*': { json: { data: [], next_token: null } },
    '/v2/usercollection/personal_info': async ({ token }) => ({ json: { id: (await server.findPerson(token ?? '')) ?? '' } }),
  });
  onTestFinished(() => service.close());
  const { clientId, clientSecret, authorizeUrl, tokenUrl } = server.settings;
  const env = {
    RINGNECK_DATA: join(folder, name),
    RINGNECK_SERVICE_URL: service.url,
    RINGNECK_AUTHORIZE_URL: authorizeUrl,
    RINGNECK_TOKEN_URL: tokenUrl,
    RINGNECK_CLIENT_ID: clientId,
    RINGNECK_CLIENT_SECRET: clientSecret,
  };
  /** Signs in at the address that the command shows, and pastes where the browser was sent. */
  const input = async (said: { readonly stderr: string }) => {
    await until('the address is shown', () => /^http\S+$/m.test(said.stderr));
    return `${await server.visit(/^http\S+$/m.exec(said.stderr)?.[0] ?? '')}\n`;
  };
  return { server, env, input };
}

test('without a browser the address is shown, and the answer that is pasted adds the account', async () => {
  const { env, input } = await set('pasted');
  const { code, stdout, stderr } = await runHere(['account', 'login', 'ada', '--no-browser'], { env, input });
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'ada active\n' });
  expect(stderr.replace(/^http\S+$/m, 'ADDRESS')).toBe(
    'Open this address in a browser, on any machine, and sign in:\nADDRESS\n' +
      'The browser is then sent to an address that it may not be able to open. Paste that address here, or the code in it:\n',
  );
  // Somebody presses Enter first.
  const typed = async (said: { readonly stderr: string }) => `\n${await input(said)}`;
  const again = await runHere(['account', 'login', 'ada', '--no-browser', '--json'], { env, input: typed });
  expect(JSON.parse(again.stdout)).toMatchObject({ user_id: 'ada', service_user_id: 'ada-1', state: 'active', reason: null });
});

test('without a display the address is shown, and a browser that reaches this machine completes the sign-in', async () => {
  const { env, server } = await set('listening');
  const input = async (said: { readonly stderr: string }) => {
    await until('the address is shown', () => /^http\S+$/m.test(said.stderr));
    await fetch(await server.visit(/^http\S+$/m.exec(said.stderr)?.[0] ?? ''));
    return '';
  };
  const { code, stdout, stderr } = await runHere(['account', 'login', 'ada'], { env: { ...env, SSH_TTY: '/dev/pts/1' }, input });
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'ada active\n' });
  const { redirectUrl } = server.settings;
  const { port } = new URL(redirectUrl);
  expect(stderr.replace(/^http\S+$/m, 'ADDRESS')).toBe(
    'Open this address in a browser, on any machine, and sign in:\nADDRESS\n' +
      `The browser is then sent to ${redirectUrl}. On this machine, or with this port forwarded (ssh -L ${port}:127.0.0.1:${port} …), that completes the sign-in. ` +
      'Where the browser cannot open that address, paste it here, or the code in it:\n',
  );
});

test('who does not allow it, or pastes nothing, is told in one line, and no account is made', async () => {
  const { server, env, input } = await set('refused');
  server.person = undefined;
  const refused = await runHere(['account', 'login', 'ada', '--no-browser'], { env, input });
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toContain(
    '\nringneck: the service did not let the person sign in (it says: access_denied: no), and nothing was stored: ringneck account login ada\n',
  );
  const nothing = await runHere(['account', 'login', 'ada', '--no-browser'], { env });
  expect(nothing.stderr).toContain('\nringneck: there is no code in the answer, and nothing was stored: ringneck account login ada\n');
  expect(await runHere(['account', 'list', '--json'], { env })).toMatchObject({ stdout: '[]\n' });
});

test('without a client the command says what to set', async () => {
  const { env } = await set('unset');
  const { RINGNECK_CLIENT_ID: _, RINGNECK_CLIENT_SECRET: __, ...rest } = env;
  expect(await runHere(['account', 'login', 'ada'], { env: rest })).toMatchObject({
    code: 2,
    stderr:
      'ringneck: nobody can sign in: set RINGNECK_CLIENT_ID and RINGNECK_CLIENT_SECRET, which the service gives to a registered application\n',
  });
});

test('Ctrl-C while the code is exchanged is answered in one line, and the account is stored', async () => {
  const { env, input } = await set('interrupted');
  // Other tests of this process have browsers that end it.
  const others = process.listeners('SIGINT');
  const original = globalThis.fetch;
  const fetched = vi.spyOn(globalThis, 'fetch').mockImplementation(async (...asked) => {
    if (asked[0] === env.RINGNECK_TOKEN_URL) {
      const [listening] = process.listeners('SIGINT').filter(one => !others.includes(one));
      listening?.('SIGINT');
      expect(listening).toBeDefined();
    }
    return original(...asked);
  });
  onTestFinished(() => fetched.mockRestore());
  const { code, stdout, stderr } = await runHere(['account', 'login', 'ada', '--no-browser'], { env, input });
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'ada active\n' });
  expect(stderr.split('\n').at(-2)).toBe(
    'The person has signed in: that is stored, or taken back at the service, before this ends. Interrupted once more, it may leave an access there.',
  );
});
