/** What a command is given besides its input. */
export interface CommandContext<Event> {
  /** Tells the caller what happens meanwhile. Events are for eyes only: a caller who does not read them in time misses the oldest. */
  emit(event: Event): void;
  /** Aborted when the caller stops (reason: exit code 130) or the owner closes its control socket (reason: exit code 75). */
  signal: AbortSignal;
}

/** Something that the owner of the data folder does for others; input, events and result are plain JSON. */
export type Command<Input, Event, Result> = (input: Input, context: CommandContext<Event>) => Promise<Result>;

/** The commands of a control socket, by name. (The types are those that every command fits.) */
export type Commands = Record<string, Command<never, unknown, unknown>>;

export type InputOf<Item> = Item extends Command<infer Input, infer _Event, infer _Result> ? Input : never;
export type EventOf<Item> = Item extends (input: never, context: CommandContext<infer Event>) => unknown ? Event : never;
export type ResultOf<Item> = Item extends (...parameters: never) => Promise<infer Result> ? Result : never;

/** One line of an answer. A line without any key is a heartbeat. */
export interface Line {
  event?: unknown;
  result?: unknown;
  error?: { name: string; message: string; exitCode: number };
}

/** A call, as it goes over the socket. With `detach` in the input the command goes on when the caller goes away. */
export interface Call {
  id: string;
  input?: unknown;
}

export const isDetached = (input: unknown): boolean =>
  typeof input === 'object' && input !== null && 'detach' in input && input.detach === true;
