import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Settings } from '../../base/config.ts';
import { ensureDiskReserve } from '../../base/disk.ts';
import { messageOf, RingneckError, UsageError } from '../../base/errors.ts';
import { ensureFolder, writeFileAtomically } from '../../base/files.ts';
import { isInBucket, showCatalogue } from '../../base/lake-address.ts';
import { upgradeCopiesOf, warehouseIn } from '../../base/warehouse-file.ts';
import type { LakeOptions, LakePlace } from '../../warehouse/lake.ts';

/** Says that the warehouse of a data folder lies in a lake, and which; by its id the lake knows the folder. */
interface Noted {
  format: 1;
  id: string;
  catalogue: string;
  data: string;
  /** Until its file is in the lake whole, the warehouse is the file. */
  importing?: boolean;
  /** Its tokens are those that the lake's machines have in common. */
  joined?: boolean;
  /** The last erasing and move, on whichever machine, of which nothing of before is left in the folder. */
  rewritten: Partial<Record<Rewritten, string>>;
}

/** The files by which machines know that somebody is being erased or moved. */
export const REWRITTEN = ['erasing.json', 'moving.json'] as const;
type Rewritten = (typeof REWRITTEN)[number];

/** Where the file of a folder is once it is imported. */
export const importedFileIn = (data: string): string => `${upgradeCopiesOf(warehouseIn(data))}lake`;

export const lakeFileIn = (data: string): string => join(data, 'lake.json');

type LakeSettings = Pick<
  Settings,
  'data' | 'warehouse' | 'lakePassword' | 'lakeKey' | 'lakeSecret' | 'lakeEndpoint' | 'lakeRegion' | 'duckdbExtensions'
>;

/** The folders in which something is stored: the data folder, and that of a lake's files where they lie in none of a bucket. */
export const storageFolders = ({ data, warehouse }: Pick<Settings, 'data' | 'warehouse'>): string[] =>
  warehouse && !isInBucket(warehouse) ? [data, warehouse.data] : [data];

/** @throws DiskFull while the disk of one of them is almost full */
export function ensureDisks(settings: Pick<Settings, 'data' | 'warehouse'>): void {
  for (const folder of storageFolders(settings)) ensureDiskReserve(folder);
}

/** The lake of the settings; undefined: the warehouse is a file. */
export function placeOf(settings: LakeSettings): LakePlace | undefined {
  const { warehouse: address, lakePassword, lakeKey, lakeSecret, lakeEndpoint, lakeRegion, duckdbExtensions } = settings;
  if (!address) return undefined;
  const s3 = { key: lakeKey, secret: lakeSecret, endpoint: lakeEndpoint, region: lakeRegion };
  return { address, password: lakePassword, s3, extensions: duckdbExtensions };
}

/**
 * What a warehouse is opened with where it lies in a lake; a folder without a warehouse is noted as that lake's.
 * @throws UsageError where the folder has its warehouse elsewhere
 */
export function lakeOf(settings: LakeSettings): { lake?: LakeOptions } {
  const place = placeOf(settings);
  const { data } = settings;
  const noted = readNoted(data);
  if (!place) {
    if (!noted || (noted.importing && !existsSync(importedFileIn(data)))) return {};
    const then = noted.importing ? ', and ringneck lake import finishes what was interrupted' : '';
    throw new UsageError(
      `the warehouse of ${data} lies in a lake, ${noted.catalogue} with ${noted.data}: set RINGNECK_WAREHOUSE to it${then}`,
    );
  }
  if (noted?.importing) throw new UsageError(`the import of ${data} into the lake was interrupted: ringneck lake import goes on with it`);
  if (!noted && existsSync(warehouseIn(data))) {
    throw new UsageError(
      `the warehouse of ${data} is a file: ringneck lake import moves it into the lake; without RINGNECK_WAREHOUSE it stays one`,
    );
  }
  if (noted && (noted.catalogue !== place.address.catalogue || noted.data !== place.address.data)) {
    throw new UsageError(
      `the warehouse of ${data} lies in another lake, ${noted.catalogue} with ${noted.data}, than RINGNECK_WAREHOUSE says, ${showCatalogue(place.address)} with ${place.address.data}: set it to that; where nothing was ever stored there, remove ${lakeFileIn(data)} and ${warehouseIn(data)}`,
    );
  }
  return { lake: { ...place, owner: (noted ?? noteLake(data, place)).id } };
}

/** Notes that the warehouse of a folder lies in a lake from now on, or is being brought there. */
export function noteLake(
  data: string,
  { address: { catalogue, data: files } }: LakePlace,
  { id = randomUUID(), importing = false, joined = false, rewritten = {} }: Partial<Omit<Noted, 'format' | 'catalogue' | 'data'>> = {},
): Noted {
  const flags = { ...(importing && { importing }), ...(joined && { joined }) };
  const noted: Noted = { format: 1, id, catalogue, data: files, ...flags, rewritten };
  ensureFolder(data);
  writeFileAtomically(lakeFileIn(data), `${JSON.stringify(noted)}\n`);
  return noted;
}

/** Nothing is left in the folder of before that. */
export function noteRewritten(settings: LakeSettings & { data: string }, name: Rewritten, mark: string): void {
  const noted = readNoted(settings.data);
  if (noted) noteLake(settings.data, placeOf(settings)!, { ...noted, rewritten: { ...noted.rewritten, [name]: mark } });
}

/** @throws RingneckError where it is unreadable */
export function readNoted(data: string): Noted | undefined {
  const path = lakeFileIn(data);
  if (!existsSync(path)) return undefined;
  try {
    return parseNoted(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    throw new RingneckError(`${path} cannot be read: ${messageOf(error)}`, 1, { cause: error });
  }
}

/** By hand: every command reads it, and zod would take most of the time of the short ones. */
function parseNoted(read: unknown): Noted {
  const { format, id, catalogue, data, importing, joined, rewritten = {} } = Object(read) as Record<keyof Noted, unknown>;
  if (format !== 1) throw new Error('its format is not 1');
  const isKnown = [importing, joined].every(flag => typeof flag === 'boolean' || flag === undefined);
  if (typeof id !== 'string' || typeof catalogue !== 'string' || typeof data !== 'string' || !isKnown) {
    throw new Error('it does not hold what it should');
  }
  const flags = { ...(importing === true && { importing }), ...(joined === true && { joined }) };
  return { format, id, catalogue, data, ...flags, rewritten: Object(rewritten) };
}
