import { chmodSync, existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isoOf } from '../../../schema/instant.ts';
import type { Settings } from '../../base/config.ts';
import { diskReserveBytes, ensureDiskReserve, isDiskFull } from '../../base/disk.ts';
import { kindOf, messageOf, RingneckError, TryLaterError } from '../../base/errors.ts';
import { ensureFolder, hashFile, writeFileAtomically } from '../../base/files.ts';
import type { Log } from '../../base/log.ts';
import { warehouseId } from '../../sync/runs/runs.ts';
import { NeedsRebuild } from '../../warehouse/needs-rebuild.ts';
import { readSnapshotFile } from '../../warehouse/readers/snapshot-file.ts';
import type { Warehouse } from '../../warehouse/warehouse.ts';
import { ensureOurs, ensurePlace, ensureUnshared } from './place.ts';

interface SnapshotsParts {
  settings: Pick<Settings, 'snapshot' | 'snapshotMode'>;
  warehouse: Warehouse;
  log: Log;
}

export interface Published {
  path: string;
  /** Everything that was committed before is in it: milliseconds. */
  at: number;
}

export interface Dated extends Published {
  manifest: string;
  sha256: string;
}

function unwritable(path: string, error: unknown): RingneckError {
  const fix = 'make its folder writable for the user who runs ringneck, or name another place by RINGNECK_SNAPSHOT';
  return new RingneckError(`${path} cannot be written (${messageOf(error)}): ${fix}.`, 1, { cause: error });
}

/** Since when none could be published, and why. */
export interface SnapshotFailure {
  since: string;
  reason: string;
}

/** What somebody who asks waits for a fresh one; where it takes longer they get the last. */
const QUICK_MS = 5_000;

const isQuick = (tookMs = 0) => tookMs < QUICK_MS;

/** What readers open, as the owner of the warehouse publishes it. */
export class Snapshots {
  /** Whether somebody else sees to it that it keeps up. */
  isKept = false;
  readonly #parts: SnapshotsParts;
  readonly #closing = new AbortController();
  #last: { at: number; commits: number } | undefined;
  #failure: SnapshotFailure | undefined;
  /** How long the last of each took. */
  #took: { refresh?: number; publish?: number } = {};
  /** How many are being made anew: that may take minutes. */
  #sorting = 0;
  #catchingUp: Promise<unknown> | undefined;
  /** The last dated one: one after the other, or two would be of one minute. */
  #keeping: Promise<unknown> = Promise.resolve();

  /** @throws UsageError where no snapshot can be put */
  constructor(parts: SnapshotsParts) {
    ensurePlace(parts.settings.snapshot, parts.warehouse.path);
    ensureUnshared(parts.settings.snapshot);
    this.#parts = parts;
  }

  /** Whether nothing was committed since the last one that this process published. */
  get isFresh(): boolean {
    return this.#last?.commits === this.#parts.warehouse.commits;
  }

  /** Undefined while one is published of all that is stored, and before this process has tried. */
  get failure(): SnapshotFailure | undefined {
    return this.isFresh ? undefined : this.#failure;
  }

  /** Whether what lies there is of another warehouse. */
  async isOfAnother(): Promise<boolean> {
    const { settings, warehouse } = this.#parts;
    if (this.#last || !existsSync(settings.snapshot)) return false;
    const said = await readSnapshotFile(settings.snapshot).catch(() => undefined);
    return said?.warehouse != null && said.warehouse !== (await warehouseId(warehouse));
  }

  /** Publishes one whose rows are all in the order of user and time. */
  publish(signal?: AbortSignal): Promise<Published> {
    return this.#telling(signal, () => this.#publish(signal));
  }

  async #publish(signal: AbortSignal | undefined): Promise<Published> {
    const { settings, warehouse } = this.#parts;
    this.#ensureRoom(settings.snapshot);
    this.#sorting++;
    try {
      return await this.#noting('publish', () => warehouse.snapshot(settings.snapshot, settings.snapshotMode, this.#until(signal)));
    } finally {
      this.#sorting--;
    }
  }

  /** At the end of a run: who has one sees what was read, where nobody keeps it up. A failure is told, and the last one stays. */
  async publishAfterRun(signal: AbortSignal): Promise<void> {
    const { settings, log } = this.#parts;
    if (this.isKept || !existsSync(settings.snapshot) || this.isFresh) return;
    await this.refresh(true, signal).catch(error =>
      log.warn({ reason: messageOf(error) }, 'the snapshot could not be brought up to date; the last one stays'),
    );
  }

  /**
   * Publishes one in which the last one is brought up to date, or a new one where that is called for.
   * @param mayRebuild false: then nothing is published, for that may take minutes
   */
  refresh(mayRebuild = true, signal?: AbortSignal): Promise<Published | undefined> {
    return this.#telling(signal, () => this.#refresh(mayRebuild, signal));
  }

  async #refresh(mayRebuild: boolean, signal: AbortSignal | undefined): Promise<Published | undefined> {
    const { settings, warehouse, log } = this.#parts;
    const { snapshot: path, snapshotMode } = settings;
    ensureFolder(dirname(path));
    // Again each time: what is made beside it while it is written would be read by others.
    ensureUnshared(path);
    ensureDiskReserve(dirname(path), diskReserveBytes + (statSync(path, { throwIfNoEntry: false })?.size ?? 0));
    try {
      return await this.#noting('refresh', () => warehouse.refreshSnapshot(path, snapshotMode, this.#until(signal)));
    } catch (error) {
      if (!(error instanceof NeedsRebuild)) throw error;
      if (!mayRebuild) return undefined;
      log.debug({ reason: error.message }, 'the snapshot is rebuilt');
      return this.#publish(signal);
    }
  }

  /** The last one, brought up to date when something was committed since and that is quick. */
  async fresh(): Promise<Published & { stale: boolean }> {
    const { settings, log } = this.#parts;
    const path = settings.snapshot;
    if (!this.#last || !existsSync(path)) await this.refresh();
    else if (!this.isFresh && isQuick(this.#took.refresh) && this.#sorting === 0) {
      // Without it the last one is still an answer.
      await this.refresh(isQuick(this.#took.publish)).catch(error =>
        log.warn({ reason: messageOf(error) }, 'the snapshot could not be brought up to date'),
      );
    }
    if (!this.isFresh && !this.isKept) this.#catchUp();
    return { path, at: this.#last!.at, stale: !this.isFresh };
  }

  /** Who asks next has a newer one, where nobody else sees to it. */
  #catchUp(): void {
    this.#catchingUp ??= this.refresh()
      .catch(error => {
        if (!this.#closing.signal.aborted)
          this.#parts.log.warn({ reason: messageOf(error) }, 'the snapshot could not be brought up to date');
      })
      .finally(() => {
        this.#catchingUp = undefined;
      });
  }

  /**
   * Keeps a copy that is never replaced, with a manifest of what it holds.
   * @throws TryLaterError when there is one of this minute
   */
  keepDated(signal?: AbortSignal): Promise<Dated> {
    const kept = this.#keeping.then(() => this.#keepDated(signal));
    this.#keeping = kept.catch(() => undefined);
    return kept;
  }

  async #keepDated(signal: AbortSignal | undefined): Promise<Dated> {
    const { settings, warehouse } = this.#parts;
    const minute = new Date(warehouse.clock.wall() / 1000).toISOString().slice(0, 16).replaceAll(':', '');
    const path = join(dirname(settings.snapshot), 'snapshots', `ringneck-${minute}Z.duckdb`);
    const manifest = path.replace(/duckdb$/, 'json');
    const half = `${path}.new`;
    for (const taken of [path, manifest]) {
      if (existsSync(taken)) throw new TryLaterError(`${taken} is there already and stays as it is: take the next one in a minute`);
    }
    removeHalfDated(dirname(path));
    this.#ensureRoom(path, basename(dirname(path)));
    this.#sorting++;
    try {
      // Nobody writes to it any more, also not by mistake.
      const { takenAt, contents } = await warehouse.copy(half, settings.snapshotMode & 0o444, this.#until(signal));
      const sha256 = await hashFile(half);
      const about = { file: basename(path), bytes: statSync(half).size, sha256, taken_at: isoOf(takenAt), ...contents };
      renameSync(half, path);
      writeFileAtomically(manifest, `${JSON.stringify(about, null, 2)}\n`);
      chmodSync(manifest, settings.snapshotMode & 0o444);
      return { path, at: Math.floor(takenAt / 1000), manifest, sha256 };
    } finally {
      rmSync(half, { force: true });
      this.#sorting--;
    }
  }

  /** Ends what is under way; the last one stays. */
  close(): void {
    this.#closing.abort(new TryLaterError('the snapshot was stopped before it was whole; the last one stays'));
  }

  #until(signal: AbortSignal | undefined): AbortSignal {
    return signal ? AbortSignal.any([this.#closing.signal, signal]) : this.#closing.signal;
  }

  /** Remembers since when nothing could be published; what was stopped is no failure. */
  async #telling<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!this.#until(signal).aborted) {
        const since = this.#failure?.since ?? isoOf(this.#parts.warehouse.clock.wall());
        this.#failure = { since, reason: messageOf(error) };
      }
      throw error;
    }
  }

  async #noting(what: 'refresh' | 'publish', work: () => Promise<{ takenAt: number }>): Promise<Published> {
    const { settings, warehouse } = this.#parts;
    // What this process published is ours.
    if (!this.#last) await ensureOurs(settings.snapshot, warehouse.path);
    const commits = warehouse.commits;
    const start = performance.now();
    const { takenAt } = await work().catch(error => {
      throw isDiskFull(error) || kindOf(error) !== 'IO Error' ? error : unwritable(settings.snapshot, error);
    });
    const at = Math.floor(takenAt / 1000);
    this.#last = { at, commits };
    this.#failure = undefined;
    this.#took[what] = performance.now() - start;
    return { path: settings.snapshot, at };
  }

  /** A sorted copy is at most as large as the warehouse, for it leaves out and sorts. */
  #ensureRoom(path: string, name?: string): void {
    ensureFolder(dirname(path));
    ensureUnshared(path, name);
    ensureDiskReserve(dirname(path), diskReserveBytes + statSync(this.#parts.warehouse.path).size);
  }
}

/** Removes the dated snapshots in a folder that were never finished. Nobody may be writing one. */
export function removeHalfDated(folder: string): void {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) if (/^ringneck-.*\.duckdb\.new/.test(name)) rmSync(join(folder, name), { force: true });
}
