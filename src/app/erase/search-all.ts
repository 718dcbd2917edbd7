import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join, sep } from 'node:path';
import { messageOf } from '../../base/errors.ts';
import { warehouseIn } from '../../base/warehouse-file.ts';
import { databasesIn } from '../../queue/remove-database.ts';
import { searchDatabase } from '../../warehouse/readers/search.ts';
import { finishingIn } from '../finishing.ts';
import type { Found, Searched } from './report.ts';
import type { SearchOrder } from './search.ts';
import { searchFile } from './search-bytes.ts';
import { searchEntries } from './search-entries.ts';

/** Written by `ringneck export` into each folder it fills. */
const EXPORT_MANIFEST = 'export.json';

type Places = Omit<Found, 'file'>[];

/** Searches the data folder, the snapshot and the queue: the bytes of each file, every text of each database, every key of our queues. */
export async function searchAll({ data, snapshot, dated, words, redis }: SearchOrder): Promise<Searched> {
  const searched: Searched = { files: 0, found: [], unsearched: [], dated_snapshots: [], exports: [] };
  const search = async (file: string, work: () => Places | Promise<Places>): Promise<Places | undefined> => {
    try {
      return await work();
    } catch (error) {
      searched.unsearched.push({ file, reason: messageOf(error) });
      return undefined;
    }
  };
  const queue = join(data, 'queue');
  const inbox = join(data, 'inbox');
  // Made anew without the person: what names somebody there stands in a row, and among the bytes our own words would be taken for it.
  const namesInRows = new Set([warehouseIn(data), snapshot].flatMap(path => [path, `${path}.wal`]));

  async function searchOne(file: string): Promise<void> {
    // Events name people by the service's ids, and the rest of the queue is the store's own. A manifest counts people and names none.
    const inQueue = file.startsWith(`${queue}${sep}`) || file.startsWith(`${inbox}${sep}`);
    const isManifest = file.endsWith('.json') && isDatabase(file.replace(/json$/, 'duckdb'));
    const asked = inQueue || isManifest ? withoutName(words) : words;
    const isOurs = inQueue || isDatabase(file) || (file.endsWith('.wal') && isDatabase(file.slice(0, -'.wal'.length)));
    const places = await search(file, async () => {
      const entries = searchEntries(data, file, asked);
      if (entries) return entries;
      const { found, isText } = searchFile(file, namesInRows.has(file) ? withoutName(asked) : asked);
      if (!isText && !isOurs) searched.unsearched.push({ file, reason: 'neither a text nor a file of Ringneck: look into it yourself' });
      return [...(isDatabase(file) ? await searchDatabase(file, asked) : []), ...found.map(what => ({ what, where: null }))];
    });
    searched.found.push(...(places ?? []).map(place => ({ file, ...place })));
    if (!searched.unsearched.some(one => one.file === file)) searched.files++;
  }

  // The service's people are its own; what is being erased stands in the note of it.
  const left = new Set([join(data, 'service'), join(data, 'erasing.json'), finishingIn(data), dated]);
  const files = listFiles(data, { left, queue, searched });
  for (const file of [snapshot, `${snapshot}.wal`]) if (existsSync(file) && !files.includes(file)) files.push(file);
  for (const file of files) await searchOne(file);
  for (const file of existsSync(dated) ? listFiles(dated, { left: new Set(), searched }) : []) {
    if (!isDatabase(file)) await searchOne(file);
    else {
      const places = await search(file, () => searchDatabase(file, words));
      if (places?.length !== 0) searched.dated_snapshots.push(file);
    }
  }
  if (redis) {
    const { searchRedis } = await import('../../queue/search-redis.ts');
    const places = await search(redis.address, () => searchRedis(redis, words));
    searched.found.push(...(places ?? []).map(place => ({ file: `Redis at ${redis.address}`, ...place })));
  }
  return searched;
}

const withoutName = (words: SearchOrder['words']) => words.filter(({ what }) => what !== 'name');

interface Listing {
  left: ReadonlySet<string>;
  /** Where it is a link what is ours there is searched; another link may lead anywhere. */
  queue?: string;
  searched: Searched;
}

/** The files below a folder, those that a link leads to as well. */
function listFiles(folder: string, listing: Listing): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name);
    if (listing.left.has(path)) return [];
    // Of a link that leads nowhere there is nothing to be searched.
    const target = entry.isSymbolicLink() ? statSync(path, { throwIfNoEntry: false }) : entry;
    if (target?.isFile()) return [path];
    if (!target?.isDirectory()) return [];
    if (existsSync(join(path, EXPORT_MANIFEST))) {
      listing.searched.exports.push(path);
      return [];
    }
    if (!entry.isSymbolicLink()) return listFiles(path, listing);
    if (path === listing.queue) return databasesIn(path).flatMap(database => listFiles(database, listing));
    listing.searched.unsearched.push({ file: path, reason: 'a link to another folder, which is not followed' });
    return [];
  });
}

/** Whatever it is called: every file of DuckDB has this in its header. */
function isDatabase(path: string): boolean {
  if (!existsSync(path)) return false;
  const file = openSync(path, 'r');
  try {
    const header = Buffer.alloc(12);
    return readSync(file, header, 0, 12, 0) === 12 && header.toString('latin1', 8) === 'DUCK';
  } finally {
    closeSync(file);
  }
}
