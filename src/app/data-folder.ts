import { messageOf, RingneckError, TryLaterError } from '../base/errors.ts';
import { closeAll } from '../base/interrupt.ts';
import { App } from './app.ts';
import type { AppOptions } from './app-options.ts';
import { type AppCommands, commandsOf } from './commands.ts';

/** A data folder that is kept open, and closed for a while when work needs it closed. */
export interface DataFolder {
  /** Those of its owner; while the folder is closed, or an erasing waits, each asks to try later. */
  readonly commands: AppCommands;
  /** @throws TryLaterError while it is closed */
  readonly app: App;
  /** Begins something that goes on while the folder is open, now and whenever it was closed for a while; `begin` gives what ends it. */
  during(begin: (app: App) => Promise<() => unknown>): Promise<void>;
  /** Rejects when the folder could not be opened again. */
  readonly broken: Promise<never>;
  /** Waits for who has it closed, then ends what goes on, the last begun first. It is not opened again from here on. */
  end(): Promise<void>;
  close(): Promise<void>;
}

interface Part {
  begin: (app: App) => Promise<() => unknown>;
  end: () => unknown;
}

/** @throws TryLaterError naming the process that holds the warehouse */
export async function openDataFolder(options: AppOptions): Promise<DataFolder> {
  let app: App | undefined;
  let commands: AppCommands | undefined;
  let closed: Promise<unknown> | undefined;
  let ending = false;
  let beginning = false;
  let breakDown: (error: unknown) => void = () => undefined;
  const broken = new Promise<never>((_, reject) => {
    breakDown = reject;
  });
  broken.catch(() => undefined);
  const parts: Part[] = [];
  const isClosed = () => new TryLaterError(`an account is being erased from ${options.settings.data}; try again in a moment`);

  async function open(): Promise<void> {
    const opened = await App.open(options);
    opened.withExclusive = work => {
      if (closed) throw isClosed();
      if (beginning) throw new TryLaterError('ringneck is still starting; try again in a moment');
      const done = closeFor(work).finally(() => {
        closed = undefined;
      });
      closed = done.catch(() => undefined);
      return done;
    };
    commands = opened.erasing ? undefined : commandsOf(opened);
    app = opened;
  }

  async function closeFor<T>(work: () => Promise<T>): Promise<T> {
    const open = app!;
    app = undefined;
    commands = undefined;
    try {
      const ends = parts.map(({ end }) => end);
      for (const part of parts) part.end = () => undefined;
      await closeAll([() => open.close(), ...ends]);
      return await work();
    } finally {
      if (!ending) await openAgain();
    }
  }

  async function openAgain(): Promise<void> {
    try {
      await open();
      for (const part of parts) part.end = await part.begin(app!);
    } catch (error) {
      breakDown(new RingneckError(`the data folder cannot be opened again: ${messageOf(error)}`, 1, { cause: error }));
    }
  }

  await open();
  return {
    commands: delegates(commandsOf(app!), () => {
      if (!commands) throw isClosed();
      return commands;
    }),
    get app() {
      if (!app) throw isClosed();
      return app;
    },
    broken,
    async during(begin) {
      await closed;
      if (!app) throw isClosed();
      beginning = true;
      try {
        parts.push({ begin, end: await begin(app) });
      } finally {
        beginning = false;
      }
    },
    async end() {
      ending = true;
      await closed;
      await closeAll(parts.splice(0).map(({ end }) => end));
    },
    async close() {
      await app?.close();
    },
  };
}

/** The same commands, each asking at its call who does it. */
function delegates(like: AppCommands, find: () => AppCommands): AppCommands {
  const names = Object.keys(like) as (keyof AppCommands)[];
  const entries = names.map(name => {
    // Each is called with the input and the context of the command of its name, by callers who see its own type.
    const delegate = async (input: never, context: never) =>
      (find()[name] as (input: never, context: never) => Promise<unknown>)(input, context);
    return [name, delegate];
  });
  return Object.fromEntries(entries) as AppCommands;
}
