import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { messageOf } from '../../../base/errors.ts';
import { tornBlocksOf } from '../../../base/warehouse-file.ts';

/** Of the blocks of a file: three headers come before the first. */
const BLOCK_BYTES = 262_144;
const HEADER_BYTES = 3 * 4096;
const CHECKSUM_BYTES = 8;

const REFUSED = /Corrupt database file: computed checksum (\d+) does not match stored checksum (\d+) in block at location (\d+)/;

/** Whether a file could not be opened because of a block of its metadata. */
export const isChecksumWrong = (error: unknown): boolean => REFUSED.test(messageOf(error));

/**
 * Mends a block that a process was killed in the middle of writing. At a checkpoint DuckDB (1.5.5) writes blocks of its metadata again in
 * place, in which something is in use: that is the same before and after, so of a block that is half the one and half the other only its
 * checksum is wrong, and no file with such a block can be opened. The checksum is written anew; the block as it was is kept beside the file.
 * @returns what was done, for the log; undefined where the error is another, the block is not as DuckDB says, or no log shows that a checkpoint was under way: then it
 *   is the disk's fault
 */
export function mendTornBlock(path: string, error: unknown): string | undefined {
  const [, computed, stored, location] = REFUSED.exec(messageOf(error)) ?? [];
  if (computed === undefined || stored === undefined || location === undefined) return undefined;
  const at = Number(location);
  if ((at - HEADER_BYTES) % BLOCK_BYTES !== 0) return undefined;
  // A checkpoint removes it at its end.
  if (!statSync(`${path}.wal`, { throwIfNoEntry: false })?.size) return undefined;
  const file = openSync(path, 'r');
  try {
    const block = Buffer.alloc(BLOCK_BYTES);
    if (readSync(file, block, 0, BLOCK_BYTES, at) !== BLOCK_BYTES) return undefined;
    const checksum = checksumOf(block.subarray(CHECKSUM_BYTES));
    if (String(checksum) !== computed || String(block.readBigUInt64LE()) !== stored) return undefined;
    const kept = `${tornBlocksOf(path)}${(at - HEADER_BYTES) / BLOCK_BYTES}-${randomBytes(4).toString('hex')}`;
    let isMended = false;
    try {
      writeFileSync(kept, block, { mode: 0o600, flag: 'wx', flush: true });
      isMended = replaceChecksum(path, at, block, checksum);
    } catch {
      // A folder that takes nothing: what DuckDB says of the file is told.
    }
    if (!isMended) {
      rmSync(kept, { force: true });
      return undefined;
    }
    return `${path}: a process was killed while it wrote a block, whose checksum is written anew; the block as it was is ${kept}`;
  } finally {
    closeSync(file);
  }
}

/** Whether the block is still what was read: another process may have mended and opened the file meanwhile. */
function replaceChecksum(path: string, at: number, block: Buffer, checksum: bigint): boolean {
  const file = openSync(path, 'r+');
  try {
    const now = Buffer.alloc(BLOCK_BYTES);
    if (readSync(file, now, 0, BLOCK_BYTES, at) !== BLOCK_BYTES || !now.equals(block)) return false;
    now.writeBigUInt64LE(checksum);
    writeSync(file, now, 0, CHECKSUM_BYTES, at);
    fsyncSync(file);
    return true;
  } finally {
    closeSync(file);
  }
}

/** As DuckDB reckons it, of a multiple of eight bytes. */
function checksumOf(bytes: Buffer): bigint {
  let sum = 5381n;
  for (let at = 0; at < bytes.length; at += 8) sum ^= BigInt.asUintN(64, bytes.readBigUInt64LE(at) * 0xbf58476d1ce4e5b9n);
  return sum;
}
