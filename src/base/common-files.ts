import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { ensureFolder, realPath, writeFileAtomically } from './files.ts';

/** The files of a data folder that whoever works on after it needs, where its warehouse is shared with other machines. */
export const COMMON_FILES = ['accounts.secret', 'mirror-tokens.json', 'erasing.json', 'moving.json'] as const;
export type CommonFile = (typeof COMMON_FILES)[number];

/** Where they lie for all machines. What returns is there for good; each throws where it could not be written, or this machine may not write. */
export interface CommonStore {
  write(name: CommonFile, content: string): void;
  remove(name: CommonFile): void;
}

const stores = new Map<string, CommonStore>();

/** Has the files of a data folder be written there first, until what this gives is called or another store comes in its place. */
export function setCommonStore(folder: string, store: CommonStore): () => void {
  stores.set(folder, store);
  return () => {
    if (stores.get(folder) === store) stores.delete(folder);
  };
}

/** Replaces a file; when this returns it is on the disk, and wherever the other machines find it. */
export function writeCommonFile(folder: string, name: CommonFile, content: string): void {
  stores.get(folder)?.write(name, content);
  ensureFolder(folder);
  writeFileAtomically(realPath(join(folder, name)), content);
}

/** Removes a file where there is one. */
export function removeCommonFile(folder: string, name: CommonFile): void {
  stores.get(folder)?.remove(name);
  rmSync(join(folder, name), { force: true });
}
