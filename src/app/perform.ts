import { TryLaterError } from '../base/errors.ts';
import { closeAll } from '../base/interrupt.ts';
import type { OwnerOperations } from './commands.ts';
import { type Door, findDoor } from './control/find-door.ts';
import { type EventOf, type InputOf, isDetached, type ResultOf } from './control/operations.ts';
import type { KeptFolder } from './data-folder.ts';
import type { Session } from './session.ts';

/**
 * Has an operation done: by the process that owns the data folder, or, when nobody does, by this one, which opens the folder and
 * listens at its door meanwhile. Both ways run the same function.
 */
export async function perform<Name extends keyof OwnerOperations & string>(
  session: Session,
  name: Name,
  input: InputOf<OwnerOperations[Name]>,
  options: { onEvent?: (event: EventOf<OwnerOperations[Name]>) => void; signal?: AbortSignal } = {},
): Promise<ResultOf<OwnerOperations[Name]>> {
  const { settings, log } = session;
  const through = (door: Door<OwnerOperations>) => {
    if (!isDetached(input) || !options.signal) return door.call(name, input, options);
    // What is detached goes on in the owner: an interruption ends only the watching.
    const { signal, ...rest } = options;
    return Promise.race([door.call(name, input, rest), aborted(signal)]);
  };
  const door = await findDoor<OwnerOperations>(settings.data);
  if (door) return through(door);
  // Loaded only by whoever becomes the owner: the database and the queue take longer to load than most commands to run.
  const [{ keepFolder }, { openDoor }] = await Promise.all([import('./data-folder.ts'), import('./control/open-door.ts')]);
  let folder: KeptFolder;
  try {
    folder = await keepFolder({ settings, log, isAlone: true });
  } catch (error) {
    // Who was opening the folder in the same moment has a door by now.
    const late = error instanceof TryLaterError ? await findDoor<OwnerOperations>(settings.data) : undefined;
    if (late) return through(late);
    throw error;
  }
  try {
    const { operations } = folder;
    const opened = await openDoor({ folder: settings.data, operations, log });
    try {
      const operation = operations[name] as (input: unknown, context: unknown) => Promise<unknown>;
      const context = { emit: options.onEvent ?? (() => undefined), signal: options.signal ?? new AbortController().signal };
      return (await operation(input, context)) as ResultOf<OwnerOperations[Name]>;
    } finally {
      // The door last: somebody who came by it may have the folder closed, and waits for the answer.
      await closeAll([() => opened.close(), () => folder.end()]);
    }
  } finally {
    await folder.close();
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
