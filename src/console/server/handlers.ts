import type { AppCommands } from '../../app/commands.ts';
import type { Questions } from '../../app/questions/questions.ts';
import type { Settings } from '../../base/config.ts';
import type { Log } from '../../base/log.ts';
import type { AnswerOf, ParsedInputOf, RouteName } from '../api/routes.ts';
import type { ConsoleSession } from './sessions.ts';

/** What a console is opened over. */
export interface ConsoleParts {
  settings: Settings;
  /** Those of the owner of the data folder; undefined: nobody owns it, and only what the snapshot has can be looked at. */
  commands?: AppCommands | undefined;
  log: Log;
  /** Milliseconds since the epoch. */
  now(): number;
}

/** Who asks, and what is asked for them. */
export interface Asking extends ConsoleParts {
  session: ConsoleSession;
  /** Over the snapshot, or over the file of the one person that the session is for. */
  questions: Questions;
  /** Aborted when the browser goes away. */
  signal: AbortSignal;
}

export type Handler<Name extends RouteName> = (input: ParsedInputOf<Name>, asking: Asking) => Promise<AnswerOf<Name>>;

/** The routes of an area, answered. */
export type Handlers<Name extends RouteName> = { [Key in Name]: Handler<Key> };
