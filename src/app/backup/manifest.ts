import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf, RingneckError, UsageError } from '../../base/errors.ts';
import { WAREHOUSE } from '../../base/warehouse-file.ts';
import { FORMAT, isOfNewer } from '../../warehouse/format.ts';

/** Of the folder of a backup. */
export const BACKUP_FORMAT = 1;

/** What makes a folder a backup; it is written last. */
export const MANIFEST = 'manifest.json';

/** Files of a data folder that a backup has as they are. */
export const SEALED = ['accounts.secret', 'mirror-tokens.json'] as const;
export const KEY = 'secret.key';
export const INBOX = 'inbox';

const INBOX_FILE = /^inbox\/\d{10}\.journal$/;

/** Nothing else is taken out of a backup: its list may name any path. */
const isPart = (path: string) => [WAREHOUSE, KEY, ...SEALED].includes(path) || INBOX_FILE.test(path);

const manifestFile = z.object({
  format: z.literal(BACKUP_FORMAT),
  /** What was acknowledged or stored before is in it: UTC. */
  made_at: z.iso.datetime(),
  ringneck: z.string(),
  duckdb: z.string(),
  warehouse: z.object({ id: z.string(), format: z.int().positive() }),
  /** Where the key is that opens `accounts.secret`. */
  key: z.enum(['included', 'left_out', 'environment', 'none']),
  /** Accepted events that were not worked off. */
  events: z.int().nonnegative(),
  files: z
    .array(z.object({ path: z.string().refine(isPart), bytes: z.int().nonnegative(), sha256: z.hex().length(64) }))
    .refine(files => files.some(({ path }) => path === WAREHOUSE)),
});
export type Manifest = z.infer<typeof manifestFile>;

/**
 * What a folder says of itself.
 * @throws UsageError, RingneckError where it is no backup, or none that this program can read
 */
export function readManifest(folder: string): Manifest {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw new UsageError(`${folder} is no folder: name that of a backup`);
  const path = join(folder, MANIFEST);
  if (!statSync(path, { throwIfNoEntry: false })) {
    throw new UsageError(`${folder} is no whole backup: it has no ${MANIFEST}, which is written last`);
  }
  const content = parse(path);
  const { format, ringneck } = content;
  if (typeof format === 'number' && format > BACKUP_FORMAT) {
    throw new RingneckError(
      `${folder} has format ${format}, this program knows ${BACKUP_FORMAT} at most: restore it with Ringneck ${String(ringneck)} or later`,
    );
  }
  const { data, error } = manifestFile.safeParse(content);
  if (!data) {
    const places = error.issues.map(issue => issue.path.join('.') || 'all of it');
    throw new RingneckError(`${path} is damaged (${[...new Set(places)].join(', ')}): nothing was restored`);
  }
  if (data.warehouse.format > FORMAT) throw isOfNewer(data.warehouse.format);
  return data;
}

function parse(path: string): Record<string, unknown> {
  try {
    const content: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof content === 'object' && content !== null) return { ...content };
    throw new Error('it holds no object');
  } catch (error) {
    throw new RingneckError(`${path} cannot be read (${messageOf(error)}): nothing was restored`, 1, { cause: error });
  }
}
