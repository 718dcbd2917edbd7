import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { resources } from '../../../schema/index.ts';
import type { Settings } from '../../base/config.ts';
import { ensureDiskReserve } from '../../base/disk.ts';
import { messageOf, RingneckError, TryLaterError, UsageError } from '../../base/errors.ts';
import { ensureFolder, realPath, syncFolder } from '../../base/files.ts';
import { isRunning } from '../../base/is-running.ts';
import { Mutex } from '../../base/mutex.ts';
import { mapAll } from '../../warehouse/mapping.ts';
import { writePersonFile } from '../../warehouse/readers/person-file.ts';
import { isOfThisVersion, readSnapshotFile } from '../../warehouse/readers/snapshot-file.ts';
import { getSource, hasOwnerSince, type Source } from '../find-source.ts';
import { personFilesIn } from './folder.ts';

/** What a process makes lies in a folder of its own until it is whole, which says its PID. */
const HALF = /\.(\d+)\.[0-9a-f]{8}\.new$/;

/**
 * Files each of which holds the rows of one person and nothing of anybody else. They are made when they are asked for first, and again when
 * what they are made of has changed.
 */
export class PersonFiles {
  readonly #settings: Settings;
  readonly #turns = new Mutex();
  /** What was compared last, by file: nothing is opened while both are the same. */
  readonly #known = new Map<string, string>();

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /**
   * The file of a person, as new as the snapshot, or as the warehouse where nobody owns it.
   * @throws UsageError where there is no such account; RingneckError where nothing is stored yet; TryLaterError while somebody is erased
   */
  get(userId: string, signal: AbortSignal): Promise<Source> {
    return this.#turns.run(() => this.#get(userId, signal));
  }

  async #get(userId: string, signal: AbortSignal): Promise<Source> {
    const source = await getSource(this.#settings, signal);
    // A name may have any characters, and stand in listings of the folder.
    const name = createHash('sha256').update(userId).digest('base64url').slice(0, 22);
    const path = join(personFilesIn(this.#settings.data), `${name}.duckdb`);
    try {
      if (!(await this.#isCurrent(path, source))) await this.#make(path, userId, source, signal);
      this.#known.set(path, stampOf(source.path, path));
      return { ...source, path };
    } catch (error) {
      if (error instanceof UsageError) rmSync(path, { force: true });
      if (await hasOwnerSince(error, source, this.#settings)) return this.#get(userId, signal);
      throw error;
    }
  }

  async #isCurrent(path: string, { path: source, kind }: Source): Promise<boolean> {
    if (!existsSync(path)) return false;
    if (this.#known.get(path) === stampOf(source, path)) return true;
    const made = await readSnapshotFile(path).catch(() => undefined);
    if (!made || !isOfThisVersion(made, mapAll(resources))) return false;
    return made.takenAt === (kind === 'snapshot' ? (await readSnapshotFile(source))?.takenAt : changedAt(source));
  }

  /** Two processes may do so at one moment: each makes one of its own, and either is right. */
  async #make(path: string, userId: string, source: Source, signal: AbortSignal): Promise<void> {
    const { data } = this.#settings;
    const folder = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.new`;
    ensureFolder(personFilesIn(data));
    removeLeft(personFilesIn(data));
    // Before the source is opened: who erases replaces the source first and removes this then, and what was made of the old one is gone.
    mkdirSync(folder, { mode: 0o700 });
    const begun = join(folder, 'begun');
    writeFileSync(begun, '', { mode: 0o600 });
    try {
      const made = join(folder, 'person.duckdb');
      const ensureThere = () => {
        if (!existsSync(begun)) throw new Error('its folder is gone');
      };
      const beforeTable = () => {
        ensureThere();
        ensureDiskReserve(data);
      };
      const at = changedAt(source.path);
      await writePersonFile({ source: source.path, userId, folder, path: made, resources, at, beforeTable, signal });
      ensureThere();
      renameSync(made, path);
      syncFolder(personFilesIn(data));
    } catch (error) {
      if (error instanceof RingneckError || existsSync(begun) || signal.aborted) throw error;
      const message = `the file of ${userId} was removed while it was made, as when somebody is erased; try again (${messageOf(error)})`;
      throw new TryLaterError(message, { cause: error });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

/** Milliseconds: when a warehouse was changed last, what stands in its log too. */
function changedAt(warehouse: string): number {
  const files = [warehouse, `${realPath(warehouse)}.wal`];
  return Math.max(...files.map(file => Math.floor(statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0)));
}

const stampOf = (...paths: string[]): string =>
  paths
    .flatMap(path => [path, `${path}.wal`])
    .map(path => statSync(path, { throwIfNoEntry: false }))
    .map(file => (file ? `${file.ino} ${file.size} ${file.mtimeMs}` : ''))
    .join('\n');

/** What processes that were killed have left. */
function removeLeft(folder: string): void {
  for (const name of readdirSync(folder)) {
    const [, pid] = HALF.exec(name) ?? [];
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(folder, name), { recursive: true, force: true });
  }
}
