import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import { call } from '../../app/call.ts';
import { messageOf } from '../../base/errors.ts';
import { Interrupted, interruptible } from '../../base/interrupt.ts';
import { loginCommand } from '../../base/sign-in-again.ts';
import { parseAccountName } from '../../ledger/accounts.ts';
import { parseDay, wholeNumber, withExample } from '../options.ts';
import { openSession } from '../session.ts';
import { note } from '../terminal/note.ts';
import { openBrowser } from '../terminal/open-browser.ts';
import { refuseFuture, showAdded } from './account-add.ts';

interface Options {
  browser: boolean;
  timeout: number;
  from?: string;
  /** So many days, up to the service's own today. */
  last?: number;
  json?: true;
}

export function addLogin(account: Command): void {
  withExample(
    account
      .command('login <name>')
      .description(
        'have a person sign in at the service in a browser, and add the account or renew its sign-in; exits with 1 when it did not come to that',
      )
      .option('--no-browser', 'print the address, and read the answer that is pasted; nothing is opened, and no port is listened at')
      .option('--timeout <seconds>', 'how long the person has', wholeNumber(10, 3_600), 300)
      .option('--from <day>', 'backfill from this day on at once', parseDay)
      .option('--json', 'print the account as JSON; with --from its run too, as `backfill`, null where none came to its report'),
    'ringneck account login ada',
    'ringneck account login ada --no-browser',
  ).action(async (given: string, options: Options) => logIn(parseAccountName(given), options));
}

/** Has a person sign in, and says how the account stands then. */
export async function logIn(name: string, { browser, timeout, ...options }: Options): Promise<void> {
  const session = await openSession();
  refuseFuture(options.from);
  const settings = await call(session, 'beginLogin', { name });
  const [{ askToSignIn }, { environment }] = await Promise.all([import('../../sign-in/login.ts'), import('../../base/config.ts')]);
  // Where the answer goes to another machine nobody can listen here.
  const listens = browser && settings.redirectUrl.startsWith('http:');
  const { redirectUrl } = settings;
  const { added, isInterrupted } = await interruptible(async signal => {
    const answer = await askToSignIn({
      settings,
      again: loginCommand(name),
      open: listens && hasBrowser(environment) ? url => signInInBrowser(url, session.settings.data) : undefined,
      listens,
      paste: readPasted,
      onStray: () => note(STRAY),
      timeoutMs: timeout * 1000,
      signal,
    });
    // Broken off here, the access would stay at the service, and nobody would know of it.
    signal.addEventListener('abort', () => note(FINISHING), { once: true });
    return { added: await call(session, 'finishLogin', { name, ...answer, redirectUrl }), isInterrupted: signal.aborted };
  });
  const { from: _, last: __, ...shown } = options;
  await showAdded(session, added, isInterrupted ? shown : options);
}

/** Whether a browser would show up before whoever reads the terminal. */
function hasBrowser(env: NodeJS.ProcessEnv): boolean {
  if (env.SSH_CONNECTION || env.SSH_TTY) return false;
  return process.platform === 'darwin' || process.platform === 'win32' || Boolean(env.DISPLAY || env.WAYLAND_DISPLAY);
}

async function signInInBrowser(url: string, data: string): Promise<void> {
  note('Sign in in the browser. If none opens, open this address on this machine:');
  note(url);
  try {
    const child = await openBrowser(url, data);
    // Who has no browser after all has the address.
    child.on('error', () => undefined).unref();
  } catch (error) {
    note(`no browser could be opened: ${messageOf(error)}`);
  }
}

/** A line of standard input in which there is something; undefined at its end. */
async function readPasted(
  url: string,
  { listensAt, signal }: { listensAt: string | undefined; signal: AbortSignal },
): Promise<string | undefined> {
  note('Open this address in a browser, on any machine, and sign in:');
  note(url);
  note(listensAt === undefined ? PASTE : listenOrPaste(listensAt));
  const lines = createInterface({ input: process.stdin, terminal: false });
  const close = () => lines.close();
  signal.addEventListener('abort', close, { once: true });
  try {
    return await new Promise<string | undefined>((resolve, reject) => {
      lines
        .on('line', line => line.trim() && resolve(line))
        .once('close', () => resolve(undefined))
        .once('SIGINT', () => reject(new Interrupted()));
    });
  } finally {
    signal.removeEventListener('abort', close);
    lines.close();
    process.stdin.pause();
  }
}

const STRAY =
  'An answer has come that is not to this sign-in (its state is another one): nothing of it was taken, and the right one is still waited for.';

const FINISHING =
  'The person has signed in: that is stored, or taken back at the service, before this ends. Interrupted once more, it may leave an access there.';

const PASTE = 'The browser is then sent to an address that it may not be able to open. Paste that address here, or the code in it:';

function listenOrPaste(address: string): string {
  const { hostname, port } = new URL(address);
  const at = `${hostname}:${port || 80}`;
  return (
    `The browser is then sent to ${address}. On this machine, or with this port forwarded (ssh -L ${port || 80}:${at} …), that completes the sign-in. ` +
    'Where the browser cannot open that address, paste it here, or the code in it:'
  );
}
