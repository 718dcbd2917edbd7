import { existsSync, readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { messageOf, RingneckError } from '../base/errors.ts';
import { realPath, writeFileAtomically } from '../base/files.ts';
import type { KnownSchema } from './schema/known-schema.ts';
import { type Publication, stampOf } from './snapshot/publisher.ts';

/** What a process leaves to the next one that opens the warehouse. It names nobody. */
export interface Handover {
  /** What lies in the file, so that it need not be listed again. */
  schema: KnownSchema;
  publication?: Publication | undefined;
  /** The last commit, of a store that others can write to unseen. */
  commits?: number | undefined;
}

const fileOf = (warehouse: string) => `${warehouse}.handover`;

/**
 * What the last process left, of a warehouse that nobody has changed since; it is believed once. To be called before the file is opened:
 * opening it may change it.
 * @throws RingneckError where it cannot be removed
 * @returns tells it once the file is opened, at this commit where it has some, when nobody else can change it any more; undefined where there is none to believe
 */
export function takeHandover(warehouse: string): (commits?: number) => Handover | undefined {
  const file = fileOf(warehouse);
  if (!existsSync(file)) return () => undefined;
  try {
    const { stamp, ...handover } = JSON.parse(readFileSync(file, 'utf8')) as Handover & { stamp: string };
    // What was committed by a process that was killed is in the log alone.
    if (stamp !== stampOf(warehouse) || existsSync(`${realPath(warehouse)}.wal`)) return () => undefined;
    return commits => (stamp === stampOf(warehouse) && commits === handover.commits ? handover : undefined);
  } catch {
    return () => undefined;
  } finally {
    remove(file);
  }
}

/** @throws RingneckError where it stays: the next process would believe it too */
function remove(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch (error) {
    const fix = `make ${dirname(file)} writable for the user who runs ringneck`;
    throw new RingneckError(`${file} cannot be removed (${messageOf(error)}): ${fix}`, 1, { cause: error });
  }
}

/** To be called once the file is closed: any change of it, by whomever, makes this void. Without it the next process lists and compares all. */
export function leaveHandover(warehouse: string, handover: Handover): void {
  try {
    writeFileAtomically(fileOf(warehouse), JSON.stringify({ ...handover, stamp: stampOf(warehouse) }));
  } catch {}
}
