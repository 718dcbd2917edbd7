import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Settings } from '../../base/config.ts';
import { RingneckError } from '../../base/errors.ts';
import { ensureFolder } from '../../base/files.ts';
import { readServiceUserId } from '../../warehouse/readers/person-file.ts';
import type { Source } from '../find-source.ts';
import { personFilesIn } from './folder.ts';
import { PersonFiles } from './person-files.ts';

/** The file of one person, for as long as their name is theirs. */
export class OnePerson {
  readonly #settings: Settings;
  readonly #user: string;
  readonly #files: PersonFiles;
  /** Goes with all else that lies there when an account is moved, erased or restored, or its name given again: it may be another person's. */
  readonly #mark: string;
  /** The service's own id of the person; undefined before anything was asked. */
  #known: string | null | undefined;

  constructor(settings: Settings, user: string) {
    this.#settings = settings;
    this.#user = user;
    this.#files = new PersonFiles(settings);
    this.#mark = join(personFilesIn(settings.data), `reader.${process.pid}.${randomBytes(4).toString('hex')}.new`);
  }

  find(signal: AbortSignal): Promise<Source> {
    return this.#files.get(this.#user, signal);
  }

  /**
   * Gives what is read of the file, where it was the same person's all the while.
   * @throws RingneckError where it is another person's now, or nobody knows that it is not
   */
  async read<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    for (;;) {
      if (!existsSync(this.#mark)) await this.#recognise(signal);
      const found = await work();
      if (existsSync(this.#mark)) return found;
    }
  }

  async #recognise(signal: AbortSignal): Promise<void> {
    await this.find(signal);
    ensureFolder(personFilesIn(this.#settings.data));
    // Before the file is read: what happens to the name from here on takes it away.
    mkdirSync(this.#mark, { mode: 0o700 });
    try {
      const id = await readServiceUserId((await this.find(signal)).path);
      if (this.#known !== undefined && (id === null || id !== this.#known)) {
        throw new RingneckError(
          `${this.#user} may be another person than when this began, for an account was moved, removed, erased or restored since: nothing is told of them until ringneck mcp is started anew`,
        );
      }
      this.#known = id;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    rmSync(this.#mark, { recursive: true, force: true });
  }
}
