import { randomBytes } from 'node:crypto';
import { Sandbox, type SandboxAccess, type SandboxOptions } from '../../app/sandbox.ts';
import { interruptible } from '../../base/interrupt.ts';
import { type AddressRange, CallbackRefused, createCallbackGuard } from '../../service/webhooks/callback-guard.ts';
import { openSession } from '../session.ts';
import { note } from '../terminal/note.ts';
import { formatTable, printJson, printLine, printLines } from '../terminal/print.ts';

export interface ServiceOptions extends SandboxOptions {
  json?: true;
}

/** Serves generated people until it is stopped; `first` is what a first start takes for what it is not told. */
export async function serveSandbox(options: ServiceOptions, first: { people: number; seed: number; from: string }): Promise<void> {
  const { settings, log } = await openSession({ follows: false });
  const sandbox = await Sandbox.prepare({ settings, log, options, first });
  try {
    const access = await sandbox.open();
    if (options.json) printJson(access);
    else printAccess(access, options.allowCallback);
    sandbox.isUnshown = false;
    await interruptible(signal => untilStopped(signal));
  } catch (error) {
    if (sandbox.isUnshown) note('Tokens or secrets were made but not shown: start with --new-tokens, which makes and shows new ones.');
    throw error;
  } finally {
    await sandbox.close();
    // The channel to the process that forked this one would keep it alive.
    if (process.connected) process.disconnect();
  }
}

const CALLBACK_URL = 'http://127.0.0.1:8080/webhook';

/** What another terminal needs to follow this service with webhooks, ready to be copied. */
function printSettings(
  { url, people: [someone], client: { id }, sign_in }: SandboxAccess,
  secret: string,
  allowed: readonly AddressRange[],
): void {
  const redirectUrl = sign_in?.redirect_urls[0];
  printLine();
  printLine('To follow it from another terminal (`ringneck up` listens there):');
  for (const [name, value] of [
    ['RINGNECK_SERVICE_URL', url],
    ['RINGNECK_CLIENT_ID', id],
    ['RINGNECK_CLIENT_SECRET', secret],
    ...(redirectUrl === undefined ? [] : [['RINGNECK_REDIRECT_URL', redirectUrl]]),
    ['RINGNECK_CALLBACK_URL', CALLBACK_URL],
    ['RINGNECK_VERIFICATION_TOKEN', randomBytes(12).toString('hex')],
  ]) {
    printLine(`  export ${name}=${value}`);
  }
  if (sign_in && someone) printLine(`and to sign in as ${someone.name}, or another of them: ringneck account login ${someone.name}`);
  if (refusesCallback(allowed))
    note(
      'Webhooks alone need more: the service refuses a callback on this machine until it is started again with --allow-callback 127.0.0.0/8.',
    );
}

function refusesCallback(allowed: readonly AddressRange[]): boolean {
  try {
    createCallbackGuard(allowed).parse(CALLBACK_URL);
    return false;
  } catch (error) {
    if (error instanceof CallbackRefused) return true;
    throw error;
  }
}

function printAccess(access: SandboxAccess, allowed: readonly AddressRange[]): void {
  const { url, people, client, sign_in, control } = access;
  printLines(
    formatTable(
      ['name', 'user_id', 'token'],
      people.map(({ name, user_id, token }) => [name, user_id, token ?? '(as before)']),
    ),
  );
  printLine();
  printLine(`client ${client.id}, secret ${client.secret ?? '(as before)'}`);
  if (sign_in) printLine(`sign-in ${sign_in.authorize_url}, tokens ${sign_in.token_url}, back to ${sign_in.redirect_urls.join(' or ')}`);
  printLine(`control ${control.url}, secret ${control.secret ?? '(as before)'}`);
  printLine(`serving at ${url}, described at ${url}/docs`);
  if (client.secret !== null) printSettings(access, client.secret, allowed);
  if (people.some(({ token }) => token === null))
    note('Tokens and the client’s secret are shown once, when they are made; --new-tokens replaces them.');
}

/** Until Ctrl-C, SIGTERM, or the end of the process that forked this one. */
function untilStopped(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    signal.addEventListener('abort', () => resolve());
    process.once('disconnect', () => resolve());
  });
}
