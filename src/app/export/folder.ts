import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, existsSync, readdirSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { accessOf, fixWritable } from '../../base/access.ts';
import { UsageError } from '../../base/errors.ts';
import { ensureFolder, writeFileAtomically } from '../../base/files.ts';
import { openJsonFile } from '../../base/json-file.ts';
import { EXPORT_FORMATS } from '../../warehouse/readers/export/formats.ts';

/** How the manifest is laid out. */
export const EXPORT_LAYOUT = 1;

const manifest = z.object({
  ringneck_export: z.literal(EXPORT_LAYOUT, { error: 'another program wrote it' }),
  format: z.enum(EXPORT_FORMATS),
  /** What was asked for; null: all. */
  tables: z.array(z.string()).nullable(),
  users: z.array(z.string()).nullable(),
  from: z.string().nullable(),
  to: z.string().nullable(),
  written_by: z.object({ ringneck: z.string(), duckdb: z.string() }),
  /** The state that the files show; `at` is when it was taken. */
  source: z.object({ kind: z.enum(['warehouse', 'snapshot']), at: z.string() }),
  /** Null until every file is there. */
  finished_at: z.string().nullable(),
  /** What the columns mean, for formats that cannot hold it themselves. */
  described: z.record(
    z.string(),
    z.object({
      comment: z.string().nullable(),
      columns: z.array(z.object({ name: z.string(), type: z.string(), comment: z.string().nullable() })),
    }),
  ),
  files: z.array(
    z.object({
      /** Within the folder, with forward slashes. */
      path: z.string().regex(/^\w[\w.-]*\/\w[\w.-]*$/),
      table: z.string(),
      month: z.string().nullable(),
      rows: z.number(),
      /** A hash of the rows: equal for equal rows. */
      content: z.string(),
      /** Both null until the file is complete. */
      bytes: z.number().nullable(),
      sha256: z.string().nullable(),
    }),
  ),
});

export type Manifest = z.infer<typeof manifest>;
export type ExportFile = Manifest['files'][number];

const MANIFEST = 'export.json';
export const EXPORT_LOCK = '.export.lock';
/** What a killed export leaves: what DuckDB had put aside, and half of a manifest. */
const LEFT = /^(?:\.export\.\d+(?:\.[0-9a-f]+)?\.tmp|export\.json\.\d+\.[0-9a-f]+\.new)$/;

/** Names of tables become names of files. */
export const isFileName = (name: string) => /^\w[\w.-]*$/.test(name);

/** Where DuckDB puts what does not fit into its memory: on the disk that must have room anyway, under a name that nobody knows before. */
export const spillFolder = (folder: string) => join(folder, `.export.${process.pid}.${randomBytes(8).toString('hex')}.tmp`);

/**
 * The manifest of the export that the folder holds; undefined for a folder that is empty or not there.
 * @throws UsageError when anything else is in it
 */
export function readManifest(folder: string): Manifest | undefined {
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (!stats) return undefined;
  if (!stats.isDirectory()) throw new UsageError(`--out ${folder} is not a folder: name one that is empty, or not there yet`);
  // Without it nobody can say which files of the folder are ours to replace.
  const found = openJsonFile(join(folder, MANIFEST), manifest, 'export into another folder').read();
  if (found) return found;
  const strange = readdirSync(folder).find(name => name !== EXPORT_LOCK && !LEFT.test(name));
  if (strange === undefined) return undefined;
  throw new UsageError(
    `--out ${folder} holds ${strange} and is not an export that Ringneck wrote: name an empty folder, or one that does not exist yet`,
  );
}

/**
 * @throws UsageError when anything in the folder, however deep, is a link: what we write and remove behind it would lie elsewhere, and a view
 * of somebody else could list what is there
 */
export function refuseLinks(folder: string): void {
  const link = existsSync(folder) && readdirSync(folder, { recursive: true, withFileTypes: true }).find(entry => entry.isSymbolicLink());
  if (!link) return;
  const path = join(link.parentPath, link.name);
  throw new UsageError(`${path} is a link, and what it points to may not be an export: remove the link, or export into another folder`);
}

/** @throws UsageError when others can write to a folder that we fill: they could make our files before us, and read them */
export function refuseShared(folder: string, said = folder): void {
  const fix = fixWritable(folder);
  if (fix === undefined) return;
  throw new UsageError(
    `${accessOf(folder, `${said} is`)?.message ?? `others can write to ${said}`}: export into another folder, or ${fix}`,
  );
}

export function writeManifest(folder: string, content: Manifest): void {
  writeFileAtomically(join(folder, MANIFEST), `${JSON.stringify(content, null, 1)}\n`);
}

/** Only under the lock. */
export function removeLeft(folder: string): void {
  for (const name of readdirSync(folder)) if (LEFT.test(name)) rmSync(join(folder, name), { recursive: true, force: true });
}

/** Whether the file is there just as it was written. */
export async function isIntact(folder: string, { path, bytes, sha256 }: ExportFile): Promise<boolean> {
  if (sha256 === null) return false;
  const stats = statSync(join(folder, path), { throwIfNoEntry: false });
  return stats?.isFile() === true && stats.size === bytes && (await hashFile(join(folder, path))) === sha256;
}

/** Makes a file by `write`, so that a reader, or a crash at any moment, meets a whole file or none. */
export async function writeWhole(
  folder: string,
  path: string,
  write: (temporary: string) => Promise<void>,
): Promise<{ bytes: number; sha256: string }> {
  const target = join(folder, path);
  ensureFolder(dirname(target));
  refuseShared(dirname(target));
  const temporary = `${target}.new`;
  rmSync(temporary, { force: true });
  try {
    await write(temporary);
    await sync(temporary, 'r+');
    const whole = { bytes: statSync(temporary).size, sha256: await hashFile(temporary) };
    await rename(temporary, target);
    // Windows cannot open folders.
    if (process.platform !== 'win32') await sync(dirname(target), 'r');
    return whole;
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** Removes a file of ours, what a killed export left of it, and its folder when nothing else is in it. */
export function removeFile(folder: string, path: string): void {
  const target = join(folder, path);
  for (const name of [target, `${target}.new`]) rmSync(name, { force: true });
  const parent = dirname(target);
  if (existsSync(parent) && readdirSync(parent).length === 0) rmdirSync(parent);
}

async function sync(path: string, flags: string): Promise<void> {
  const handle = await open(path, flags);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(chunk);
  return hash.digest('hex');
}
