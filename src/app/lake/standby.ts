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
import { noteLake, placeOf, REWRITTEN, readNoted } from './place.ts';

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
  #following: Promise<boolean> | undefined;
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

  /** Told as often as it is looked. */
  async noteHolder(holder: Holder): Promise<void> {
    this.#holder = holder;
    // What cannot be removed keeps commands from being answered, not this machine from waiting.
    await this.#follow().catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#release();
    await this.#following?.catch(() => undefined);
    await this.#closeApp();
  }

  async #call(name: keyof AppCommands, rest: never[]): Promise<unknown> {
    // Who asks may have been let in by a name that is another person's now.
    if (await this.#follow()) throw new TryLaterError('somebody was erased or moved on another machine just now: try again');
    await this.#pullTokens();
    const app = await this.#open();
    app.console = this.console;
    await app.warehouse.noticeOthers();
    const command = commandsOf(() => app)[name] as (...rest: never[]) => Promise<unknown>;
    return command(...rest);
  }

  /** Whether copies of before had to go. */
  #follow(): Promise<boolean> {
    const atRest = async () => {
      await this.#closeApp();
      // Whose tokens are gone is named in those of before.
      await this.#pullTokens();
    };
    this.#following ??= this.#followOnce(atRest).finally(() => {
      this.#following = undefined;
    });
    return this.#following;
  }

  async #followOnce(atRest: () => Promise<void>): Promise<boolean> {
    const { followRewritten } = await import('./follow-rewritten.ts');
    return followRewritten(this.#options, this.#standby.catalogue, atRest);
  }

  async #closeApp(): Promise<void> {
    const app = this.#app;
    this.#app = undefined;
    await (await app?.catch(() => undefined))?.close();
  }

  /** Opened when something is asked: nobody may ever. */
  async #open(): Promise<App> {
    await this.#following?.catch(() => undefined);
    if (this.#isClosed) throw new TryLaterError('this machine takes over the lake: try again in a moment');
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
    // Whoever takes over has newer ones.
    if (this.#isClosed) return;
    // What is under way there is not under way here.
    for (const name of REWRITTEN) common.delete(name);
    pullCommonFiles(data, common);
    if (!noted.joined && common.size) noteLake(data, placeOf(settings)!, { ...noted, joined: true });
  }
}
