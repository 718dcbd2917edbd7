import { basename, join } from 'node:path';
import { resources } from '../../../schema/index.ts';
import { ensureDiskReserve } from '../../base/disk.ts';
import { ensureFolder } from '../../base/files.ts';
import { version } from '../../base/version.ts';
import type { ExportFormat } from '../../warehouse/export/formats.ts';
import { lockFile } from '../../warehouse/export/lock.ts';
import { type ExportPart, planParts } from '../../warehouse/export/parts.ts';
import { type ExportSource, type ExportTable, openExportSource } from '../../warehouse/export/source.ts';
import { writePart } from '../../warehouse/export/write.ts';
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
      return await fillFolder({ ...work, request }, source, tables);
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

async function fillFolder({ request, from, onProgress, onNote, signal }: Work, source: ExportSource, tables: readonly ExportTable[]) {
  const { out, format } = request;
  // Another export may have ended since.
  const before = readManifest(out);
  refuseOther(request, before);
  removeLeft(out);
  const progress: ExportProgress = { files: { done: 0, total: 0 }, rows: { done: 0, total: 0 }, now: '' };
  const tell = (now: string) => {
    signal.throwIfAborted();
    progress.now = now;
    onProgress(progress);
  };

  const parts: ExportPart[] = [];
  for (const table of tables) {
    tell(`counting ${table.name}`);
    parts.push(...(await planParts(source, table, format, request)));
  }
  const described: Manifest['described'] = Object.fromEntries(
    tables.map(({ name, comment, columns }) => [name, { comment, columns: [...columns] }]),
  );
  const known = new Map(before?.files.map(file => [file.path, file]));
  const files: ExportFile[] = [];
  for (const part of parts) {
    const path = pathOf(part, format);
    tell(`checking ${basename(path)}`);
    const file = { path, table: part.table.name, month: part.month, rows: part.rows, content: part.content };
    const last = known.get(path);
    const alike = JSON.stringify(before?.described[file.table]) === JSON.stringify(described[file.table]);
    const same = last?.rows === file.rows && last.content === file.content && alike && (await isIntact(out, last));
    files.push({ ...file, bytes: same ? last.bytes : null, sha256: same ? last.sha256 : null });
  }
  const planned = new Set(files.map(({ path }) => path));
  const gone = [...known.values()].filter(({ path }) => !planned.has(path)).map(file => ({ ...file, bytes: null, sha256: null }));
  const skipped = files.filter(({ sha256 }) => sha256 !== null).length;

  const { tables: named, users, from: first, to: last } = request;
  const save = (more: Partial<Manifest>) =>
    writeManifest(out, {
      ringneck_export: EXPORT_LAYOUT,
      format,
      tables: named && [...named],
      users: users && [...users],
      from: first,
      to: last,
      written_by: { ringneck: version, duckdb: source.duckdbVersion },
      source: { kind: from.kind, at: from.at },
      finished_at: null,
      described,
      files,
      ...more,
    });
  // All that will be here or must go is noted first: what a killed run leaves is known for ours.
  save({ files: [...files, ...gone] });
  for (const { path } of gone) removeFile(out, path);

  const left = files.flatMap((file, i) => (file.sha256 === null ? [{ file, part: parts[i]! }] : []));
  progress.files.total = left.length;
  progress.rows.total = left.reduce((sum, { part }) => sum + part.rows, 0);
  let savedAt = performance.now();
  try {
    for (const { file, part } of left) {
      tell(basename(file.path));
      ensureDiskReserve(out);
      Object.assign(file, await writeWhole(out, file.path, path => writePart(source, part, format, request, path)));
      progress.files.done += 1;
      progress.rows.done += part.rows;
      if (performance.now() - savedAt < SAVE_EVERY_MS) continue;
      save({});
      savedAt = performance.now();
    }
  } catch (error) {
    // Where the disk is full this may fail too: then those files are written again.
    try {
      save({});
    } catch {}
    throw error;
  }
  save({ finished_at: new Date().toISOString() });
  onProgress({ ...progress, now: 'done' });
  for (const text of noteOn(request, tables, files)) onNote(text);
  const sum = (of: (file: ExportFile) => number) => files.reduce((total, file) => total + of(file), 0);
  return {
    out,
    format,
    files: files.length,
    rows: sum(({ rows }) => rows),
    bytes: sum(({ bytes }) => bytes!),
    skipped,
    removed: gone.length,
  };
}

/** A folder for each table, so that one pattern (`sleep/*.parquet`) reads all of it. */
function pathOf({ table, month }: ExportPart, format: ExportFormat): string {
  return `${table.name}/${table.name}${month === null ? '' : `-${month}`}.${format}`;
}
