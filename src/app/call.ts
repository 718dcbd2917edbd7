import { TryLaterError } from '../base/errors.ts';
import { closeAll } from '../base/interrupt.ts';
import type { AppOptions } from './app-options.ts';
import type { AppCommands } from './commands.ts';
import { type EventOf, type InputOf, isDetached, type ResultOf } from './control/command.ts';
import { type ControlClient, connectControl } from './control/connect-control.ts';
import type { DataFolder } from './data-folder.ts';
import { ensureEnrolment, ensureSignIn, ensureThere, ensureWarehouse } from './ensure-there.ts';

/**
 * Has a command done: by the process that owns the data folder, or, when nobody does, by this one, which opens the folder and
 * listens at its control socket meanwhile. Both ways run the same function.
 */
export async function call<Name extends keyof AppCommands & string>(
  session: Pick<AppOptions, 'settings' | 'log' | 'onErased'>,
  name: Name,
  input: InputOf<AppCommands[Name]>,
  options: { onEvent?: (event: EventOf<AppCommands[Name]>) => void; signal?: AbortSignal } = {},
): Promise<ResultOf<AppCommands[Name]>> {
  const { settings, log } = session;
  const through = (control: ControlClient<AppCommands>) => {
    if (!isDetached(input) || !options.signal) return control.call(name, input, options);
    // What is detached goes on in the owner: an interruption ends only the watching.
    const { signal, ...rest } = options;
    return Promise.race([control.call(name, input, rest), aborted(signal)]);
  };
  const control = await connectControl<AppCommands>(settings.data);
  if (control) return through(control);
  if (ASK_NO_WAREHOUSE.includes(name)) ensureThere(settings);
  else if (!MAKE_FOLDER.includes(name)) ensureWarehouse(settings);
  // What is refused in the end leaves no folder.
  if (name === 'beginLogin') ensureSignIn(settings);
  if (name.startsWith('inviteAccount')) ensureEnrolment(settings);
  // Loaded only by whoever becomes the owner: the database and the queue take longer to load than most commands to run.
  const [{ DataFolder }, { serveControl }] = await Promise.all([import('./data-folder.ts'), import('./control/serve-control.ts')]);
  let folder: DataFolder;
  try {
    folder = await DataFolder.open({ ...session, isAlone: true });
  } catch (error) {
    // Who was opening the folder in the same moment has a control socket by now.
    const late = error instanceof TryLaterError ? await connectControl<AppCommands>(settings.data) : undefined;
    if (late) return through(late);
    throw error;
  }
  try {
    const { commands } = folder;
    const opened = await serveControl({ folder: settings.data, commands, log, isPassing: true });
    try {
      const command = commands[name] as (input: unknown, context: unknown) => Promise<unknown>;
      const context = { emit: options.onEvent ?? (() => undefined), signal: options.signal ?? new AbortController().signal };
      return (await command(input, context)) as ResultOf<AppCommands[Name]>;
    } finally {
      // The control socket last: somebody who came by it may have the folder closed, and waits for the answer.
      await closeAll([() => opened.close(), () => folder.end()]);
    }
  } finally {
    await folder.close();
  }
}

/** What begins with nothing: an account, or the plan of a study. */
const MAKE_FOLDER: readonly string[] = [
  'addAccount',
  'addAccounts',
  'beginLogin',
  'finishLogin',
  'importParticipants',
  'inviteAccount',
  'inviteAccounts',
] satisfies (keyof AppCommands)[];

/** What is of the client at the service, or, as its secret, of the sandbox, be there a warehouse or not. */
const ASK_NO_WAREHOUSE: readonly string[] = ['rotateKey', 'subscriptionsList', 'subscriptionsRemove'] satisfies (keyof AppCommands)[];

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
