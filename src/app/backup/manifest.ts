import { createHash } from 'node:crypto';
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
  /** What time it was then at the service; earlier backups do not tell. */
  service_at: z.iso.datetime().optional(),
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
  /** Of all the rest of the manifest. */
  sha256: z.hex().length(64),
});
export type Manifest = Omit<z.infer<typeof manifestFile>, 'sha256'>;

/** Of the content, however it is spaced. */
const digestOf = (content: object) => createHash('sha256').update(JSON.stringify(content)).digest('hex');

/** The text of a manifest, which any change of it belies. */
export const writeManifest = (manifest: Manifest): string => `${JSON.stringify({ ...manifest, sha256: digestOf(manifest) }, null, 2)}\n`;

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
  const damaged = (what: string) => new RingneckError(`${path} is damaged (${what}): nothing was restored`);
  if (!data) throw damaged([...new Set(error.issues.map(issue => issue.path.join('.') || 'all of it'))].join(', '));
  const { sha256, ...said } = content;
  if (digestOf(said) !== sha256) throw damaged('it has changed: another SHA-256');
  if (data.events && !data.files.some(({ path }) => INBOX_FILE.test(path))) throw damaged(`${data.events} events, and no inbox`);
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
