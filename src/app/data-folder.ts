import { messageOf, RingneckError, TryLaterError } from '../base/errors.ts';
import { createFailure } from '../base/failure.ts';
import { closeAll } from '../base/interrupt.ts';
import type { FailureCommand } from '../base/on-failure.ts';
import type { Unwritten } from '../sign-in/sign-ins.ts';
import { App, openOnFailure } from './app.ts';
import type { AppOptions } from './app-options.ts';
import { type AppCommands, commandsOf } from './commands.ts';
import { InHand } from './in-hand.ts';
import { holdLake } from './lake/hold.ts';
import { type Doing, tellClosed } from './move/is-moving.ts';

interface Part {
  begin: (app: App) => Promise<() => unknown>;
  end: () => unknown;
}

/** A data folder that is kept open, and closed for a while when work needs it closed. */
export class DataFolder {
  /** Those of its owner; while the folder is closed, or an erasing waits, each asks to try later. */
  readonly commands: AppCommands;
  readonly #options: AppOptions & { onFailure: FailureCommand };
  readonly #ofErased = new InHand();
  readonly #unwritten: Unwritten = new Map();
  readonly #parts: Part[] = [];
  readonly #failure = createFailure();
  #app: App | undefined;
  /** Of the app, also while it closes. */
  #inHand: InHand | undefined;
  #closed: Promise<unknown> | undefined;
  #doing: Doing = 'erased from';
  /** Lets another machine have the lake: not while it is closed for a while. */
  #release: (() => Promise<void>) | undefined;
  #ending = false;
  #beginning = false;

  private constructor(options: AppOptions) {
    const onFailure = openOnFailure(options);
    this.#options = { ...options, ofErased: this.#ofErased, unwritten: this.#unwritten, onFailure };
    this.commands = commandsOf(() => {
      const { erasing } = this.app;
      if (erasing) throw new TryLaterError(`${this.#closedMessage} (${erasing.reason})`);
      return this.app;
    });
  }

  /** @throws TryLaterError naming the process that holds the warehouse */
  static async open(options: AppOptions): Promise<DataFolder> {
    const folder = new DataFolder(options);
    folder.#release = await holdLake(options);
    try {
      await folder.#open();
      return folder;
    } catch (error) {
      await folder.#release?.();
      throw error;
    }
  }

  /** @throws TryLaterError while it is closed */
  get app(): App {
    if (!this.#app) throw this.#isClosed();
    return this.#app;
  }

  /** Rejects when the folder could not be opened again. */
  get broken(): Promise<never> {
    return this.#failure.failed;
  }

  /** Begins something that goes on while the folder is open, now and whenever it was closed for a while; `begin` gives what ends it. */
  async during(begin: (app: App) => Promise<() => unknown>): Promise<void> {
    await this.#closed;
    const { app } = this;
    this.#beginning = true;
    try {
      this.#parts.push({ begin, end: await begin(app) });
    } finally {
      this.#beginning = false;
    }
  }

  /** Waits for who has it closed, then ends what goes on, the last begun first. It is not opened again from here on. */
  async end(): Promise<void> {
    this.#ending = true;
    await this.#closed;
    await closeAll(this.#parts.splice(0).map(({ end }) => end));
  }

  async close(): Promise<void> {
    this.#ending = true;
    // Whoever has it closed for a while waits for answers that come once.
    await this.#closed;
    await closeAll([
      () => this.#release?.(),
      () => this.#options.onFailure.close(),
      // What comes of it is kept in the lake’s catalogue too.
      () => this.#ofErased.settle(this.#options.log),
      () => this.#app?.close(),
    ]);
  }

  /** As `App.beginNothing`; what is being taken back of who was erased ends all the same. */
  beginNothing(): void {
    this.#app?.beginNothing();
  }

  /** Undefined where no sign-in is being made, renewed or taken back. */
  findSignInsInHand(): Promise<unknown> | undefined {
    const busy = [this.#inHand, this.#ofErased].flatMap(hand => (hand && !hand.isEmpty ? [hand.done()] : []));
    return busy.length ? Promise.all(busy) : undefined;
  }

  #isClosed(): TryLaterError {
    return new TryLaterError(this.#closedMessage);
  }

  get #closedMessage(): string {
    return tellClosed(this.#doing, this.#options.settings.data);
  }

  async #open(): Promise<App> {
    const app = await App.open(this.#options);
    app.withExclusive = (work, doing = 'erased from') => {
      if (this.#closed) throw this.#isClosed();
      if (this.#beginning) throw new TryLaterError('ringneck is still starting; try again in a moment');
      this.#doing = doing;
      const done = this.#closeFor(work).finally(() => {
        this.#closed = undefined;
      });
      this.#closed = done.catch(() => undefined);
      return done;
    };
    this.#app = app;
    this.#inHand = app.inHand;
    return app;
  }

  async #closeFor<T>(work: () => Promise<T>): Promise<T> {
    const { app } = this;
    this.#app = undefined;
    try {
      const ends = this.#parts.map(({ end }) => end);
      for (const part of this.#parts) part.end = () => undefined;
      await closeAll([() => app.close(this.#closedMessage), ...ends]);
      this.#ensureWritten();
      return await work();
    } finally {
      if (!this.#ending) await this.#openAgain();
    }
  }

  /** What came as it closed: a name may be another person's after the work, and this process may end in it. */
  #ensureWritten(): void {
    const names = [...this.#unwritten.keys()];
    if (!names.length) return;
    throw new RingneckError(
      `the renewed tokens of ${names.join(', ')} cannot be written, and nothing was done: the log says why; put it right and try again`,
    );
  }

  async #openAgain(): Promise<void> {
    try {
      const app = await this.#open();
      for (const part of this.#parts) part.end = await part.begin(app);
    } catch (error) {
      this.#failure.fail(new RingneckError(`the data folder cannot be opened again: ${messageOf(error)}`, 1, { cause: error }));
    }
  }
}
