import { basename, join } from 'node:path';
import { resources } from '../../../schema/index.ts';
import { ensureDiskReserve } from '../../base/disk.ts';
import { ensureFolder } from '../../base/files.ts';
import { version } from '../../base/version.ts';
import type { ExportFormat } from '../../warehouse/readers/export/formats.ts';
import { lockFile } from '../../warehouse/readers/export/lock.ts';
import { type ExportPart, planParts } from '../../warehouse/readers/export/parts.ts';
import { type ExportSource, type ExportTable, openExportSource } from '../../warehouse/readers/export/source.ts';
import { writePart } from '../../warehouse/readers/export/write.ts';
import {
  EXPORT_LAYOUT,
  EXPORT_LOCK,
  type ExportFile,
  isIntact,
  type Manifest,
  readManifest,
  refuseLinks,
  refuseShared,
  removeFile,
  removeLeft,
  spillFolder,
  writeManifest,
  writeWhole,
} from './folder.ts';
import { chooseTables, type ExportRequest, noteOn, refuseOther, refuseUnknownUsers, spellRequest } from './request.ts';

export interface ExportProgress {
  files: { done: number; total: number };
  rows: { done: number; total: number };
  /** What is being done. */
  now: string;
}

export interface ExportReport {
  out: string;
  format: ExportFormat;
  /** Of the whole export: the skipped ones, which had nothing new, are among them. */
  files: number;
  rows: number;
  bytes: number;
  skipped: number;
  removed: number;
}

interface Work {
  request: ExportRequest;
  from: { path: string; kind: Manifest['source']['kind']; at: string };
  onProgress(progress: ExportProgress): void;
  /** What somebody should know of the files. */
  onNote(text: string): void;
  signal: AbortSignal;
}

/** How much finished work a kill may cost. */
const SAVE_EVERY_MS = 1_000;

/**
 * Fills the folder with the files of one state of the warehouse. What an earlier, perhaps interrupted, run of the same request left there
 * and is still right stays; the rest is written, and what is no longer there is removed.
 * @throws UsageError when the folder holds anything else, others can write to it, or the request names what is not there
 */
export async function runExport(work: Work): Promise<ExportReport> {
  const { from, signal } = work;
  const { out } = work.request;
  const found = readManifest(out);
  refuseLinks(out);
  const source = await openExportSource(from.path, resources, { out, spill: spillFolder(out) });
  try {
    const request = spellRequest(source, work.request);
    refuseOther(request, found);
    const tables = chooseTables(source, request);
    await refuseUnknownUsers(source, request);
    ensureFolder(request.out);
    refuseShared(request.out, `--out ${request.out}`);
    const unlock = await lockFile(join(request.out, EXPORT_LOCK));
    const interrupt = () => source.interrupt();
    signal.addEventListener('abort', interrupt);
    try {
      return await new Filling({ ...work, request }, source, tables).run();
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      signal.removeEventListener('abort', interrupt);
      unlock();
    }
  } finally {
    source.close();
  }
}

/** A file that is to be there, and what is written into it. */
interface Planned {
  file: ExportFile;
  part: ExportPart;
}

/** One export under way in its folder. */
class Filling {
  readonly #work: Work;
  readonly #source: ExportSource;
  readonly #tables: readonly ExportTable[];
  readonly #described: Manifest['described'];
  /** What the last export left. */
  readonly #before: Manifest | undefined;
  readonly #progress: ExportProgress = { files: { done: 0, total: 0 }, rows: { done: 0, total: 0 }, now: '' };

  constructor(work: Work, source: ExportSource, tables: readonly ExportTable[]) {
    const { request } = work;
    this.#work = work;
    this.#source = source;
    this.#tables = tables;
    this.#described = Object.fromEntries(tables.map(({ name, comment, columns }) => [name, { comment, columns: [...columns] }]));
    // Another export may have ended since.
    this.#before = readManifest(request.out);
    refuseOther(request, this.#before);
  }

  async run(): Promise<ExportReport> {
    const { request, onProgress, onNote } = this.#work;
    const { out, format } = request;
    removeLeft(out);
    const planned = await this.#plan();
    const files = planned.map(({ file }) => file);
    const left = planned.filter(({ file }) => file.sha256 === null);
    const paths = new Set(files.map(({ path }) => path));
    const gone = (this.#before?.files ?? []).filter(({ path }) => !paths.has(path)).map(file => ({ ...file, bytes: null, sha256: null }));
    // All that will be here or must go is noted first: what a killed run leaves is known for ours.
    this.#save({ files: [...files, ...gone] });
    for (const { path } of gone) removeFile(out, path);
    await this.#write(left, files);
    this.#save({ files, finished_at: new Date().toISOString() });
    onProgress({ ...this.#progress, now: 'done' });
    for (const text of noteOn(request, this.#tables, files)) onNote(text);
    const rows = files.reduce((sum, file) => sum + file.rows, 0);
    const bytes = files.reduce((sum, file) => sum + (file.bytes ?? 0), 0);
    return { out, format, files: files.length, rows, bytes, skipped: files.length - left.length, removed: gone.length };
  }

  /** Every file; of those that are here and still right, bytes and hash too. */
  async #plan(): Promise<Planned[]> {
    const { request } = this.#work;
    const parts: ExportPart[] = [];
    for (const table of this.#tables) {
      this.#tell(`counting ${table.name}`);
      parts.push(...(await planParts(this.#source, table, request.format, request)));
    }
    const planned: Planned[] = [];
    for (const part of parts) planned.push({ part, file: await this.#check(part) });
    return planned;
  }

  async #check(part: ExportPart): Promise<ExportFile> {
    const { out, format } = this.#work.request;
    const path = pathOf(part, format);
    this.#tell(`checking ${basename(path)}`);
    const file = { path, table: part.table.name, month: part.month, rows: part.rows, content: part.content };
    const last = this.#before?.files.find(known => known.path === path);
    const alike = JSON.stringify(this.#before?.described[file.table]) === JSON.stringify(this.#described[file.table]);
    const same = last?.rows === file.rows && last.content === file.content && alike && (await isIntact(out, last));
    return { ...file, bytes: same ? last.bytes : null, sha256: same ? last.sha256 : null };
  }

  /** Writes those that are left, and their bytes and hashes into the manifest. */
  async #write(left: readonly Planned[], files: ExportFile[]): Promise<void> {
    const { out, format } = this.#work.request;
    const { files: counted, rows } = this.#progress;
    counted.total = left.length;
    rows.total = left.reduce((sum, { part }) => sum + part.rows, 0);
    let savedAt = performance.now();
    try {
      for (const { file, part } of left) {
        this.#tell(basename(file.path));
        ensureDiskReserve(out);
        Object.assign(file, await writeWhole(out, file.path, path => writePart(this.#source, part, format, this.#work.request, path)));
        counted.done += 1;
        rows.done += part.rows;
        if (performance.now() - savedAt < SAVE_EVERY_MS) continue;
        this.#save({ files });
        savedAt = performance.now();
      }
    } catch (error) {
      // Where the disk is full this may fail too: then those files are written again.
      try {
        this.#save({ files });
      } catch {}
      throw error;
    }
  }

  #save(more: Pick<Manifest, 'files'> & Partial<Manifest>): void {
    const { request, from } = this.#work;
    const { out, format, tables, users, from: first, to: last } = request;
    writeManifest(out, {
      ringneck_export: EXPORT_LAYOUT,
      format,
      tables: tables && [...tables],
      users: users && [...users],
      from: first,
      to: last,
      written_by: { ringneck: version, duckdb: this.#source.duckdbVersion },
      source: { kind: from.kind, at: from.at },
      finished_at: null,
      described: this.#described,
      ...more,
    });
  }

  #tell(now: string): void {
    this.#work.signal.throwIfAborted();
    this.#progress.now = now;
    this.#work.onProgress(this.#progress);
  }
}

/** A folder for each table, so that one pattern (`sleep/*.parquet`) reads all of it. */
function pathOf({ table, month }: ExportPart, format: ExportFormat): string {
  return `${table.name}/${table.name}${month === null ? '' : `-${month}`}.${format}`;
}
