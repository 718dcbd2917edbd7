import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { vi } from 'vitest';
import { Warehouse } from '../../src/warehouse/warehouse.ts';

const readOnly = () => new Error('EROFS: read-only file system');

/** Has a file, and a snapshot, neither be replaced nor removed until `letGo`, as on a disk that became read-only. */
export function holdInPlace(path: string): void {
  const { unlinkSync, renameSync } = fs;
  vi.spyOn(Warehouse.prototype, 'snapshot').mockRejectedValue(readOnly());
  vi.spyOn(fs, 'unlinkSync').mockImplementation(file => {
    if (file === path) throw readOnly();
    unlinkSync(file);
  });
  vi.spyOn(fs, 'renameSync').mockImplementation((from, to) => {
    if (to === path) throw readOnly();
    renameSync(from, to);
  });
  syncBuiltinESMExports();
}

export function letGo(): void {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
}
