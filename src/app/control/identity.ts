import { statSync } from 'node:fs';
import { warehouseIn } from '../../base/warehouse-file.ts';

/** Which warehouse a data folder holds: device and inode of its file, or of the folder while it has none. A copy is another. */
export function findWarehouseIdentity(folder: string): string | undefined {
  return findIdentity(warehouseIn(folder)) ?? findIdentity(folder);
}

/** Device and inode of what a path leads to; undefined where nothing is to be seen. */
export function findIdentity(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}
