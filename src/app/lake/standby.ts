import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { COMMON_FILES, setCommonStore } from '../../base/common-files.ts';
import { TryLaterError } from '../../base/errors.ts';
import type { Catalogue } from '../../machines/catalogue.ts';
import type { Holder } from '../../machines/lease.ts';
import { App } from '../app.ts';
import type { AppOptions, ConsoleLinks, StandbyOptions } from '../app-options.ts';
import { type AppCommands, commandsOf } from '../commands.ts';
import { tellHolder } from './hold.ts';
import { noteLake, placeOf, readNoted } from './place.ts';

/** What a machine answers while another one works on the lake: all that changes nothing. */
export class Standby {
  /** Those that change something say on which machine they are to be typed. */
  readonly commands: AppCommands;
  /** The console that is served meanwhile. */
  console: ConsoleLinks | undefined;
  readonly #options: AppOptions;
  readonly #standby: StandbyOptions;
  readonly #release: () => void;
  #holder: Holder;
  #app: Promise<App> | undefined;
  #isClosed = false;

  constructor(options: AppOptions, catalogue: Catalogue, holder: Holder) {
    this.#options = options;
    this.#holder = holder;
    const refusal = () => new TryLaterError(`${tellHolder(this.#holder)}, and this machine waits: say it there`);
    this.#standby = { catalogue, holder: () => this.#holder, refusal };
    const refuse = () => {
      throw refusal();
    };
    this.#release = setCommonStore(options.settings.data, { write: refuse, remove: refuse });
    const names = Object.keys(commandsOf(refuse)) as (keyof AppCommands)[];
    this.commands = Object.fromEntries(names.map(name => [name, (...rest: never[]) => this.#call(name, rest)])) as unknown as AppCommands;
  }

  noteHolder(holder: Holder): void {
    this.#holder = holder;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#release();
    await (await this.#app?.catch(() => undefined))?.close();
  }

  async #call(name: keyof AppCommands, rest: never[]): Promise<unknown> {
    await this.#pullTokens();
    const app = await this.#open();
    app.console = this.console;
    const command = commandsOf(() => app)[name] as (...rest: never[]) => Promise<unknown>;
    return command(...rest);
  }

  /** Opened when something is asked: nobody may ever. */
  #open(): Promise<App> {
    if (this.#isClosed) return Promise.reject(new TryLaterError('this machine takes over the lake: try again in a moment'));
    this.#app ??= App.open({ ...this.#options, standby: this.#standby }).catch(error => {
      this.#app = undefined;
      throw error;
    });
    return this.#app;
  }

  /** As the machine that works has them now. A folder with tokens of its own that the others have not is left as it is. */
  async #pullTokens(): Promise<void> {
    const { settings } = this.#options;
    const { data } = settings;
    const noted = readNoted(data);
    if (!noted || (!noted.joined && COMMON_FILES.some(name => existsSync(join(data, name))))) return;
    const { pullCommonFiles, readCommonFiles } = await import('../../machines/files.ts');
    const common = await readCommonFiles(this.#standby.catalogue);
    // What is under way there is not under way here.
    for (const name of ['erasing.json', 'moving.json'] as const) common.delete(name);
    pullCommonFiles(data, common);
    if (!noted.joined && common.size) noteLake(data, placeOf(settings)!, { ...noted, joined: true });
  }
}
