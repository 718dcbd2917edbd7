import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const block = 512;

/** Unpacks a tar archive of folders and files into a folder that is there, readable by its owner only. */
export function unpack(archive: Buffer, folder: string): void {
  for (let at = 0; at + block <= archive.length; ) {
    const header = archive.subarray(at, at + block);
    const name = text(header, 0, 100);
    if (name === '') return;
    const path = join(folder, text(header, 345, 155), name);
    if (relative(folder, path).startsWith('..')) throw new Error(`an archive with a path outside of it: ${name}`);
    const size = Number.parseInt(text(header, 124, 12), 8) || 0;
    const kind = text(header, 156, 1);
    at += block;
    if (kind === '5') mkdirSync(path, { recursive: true, mode: 0o700 });
    else writeFileSync(path, archive.subarray(at, at + size), { mode: 0o600 });
    at += Math.ceil(size / block) * block;
  }
}

function text(header: Buffer, start: number, length: number): string {
  const bytes = header.subarray(start, start + length);
  const end = bytes.indexOf(0);
  return bytes.toString('utf8', 0, end === -1 ? length : end).trim();
}
