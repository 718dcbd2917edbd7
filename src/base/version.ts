import { existsSync, readFileSync } from 'node:fs';

// package.json lies two folders above src/base/, and three above dist/src/base/.
const file = ['../../package.json', '../../../package.json'].map(path => new URL(path, import.meta.url)).find(url => existsSync(url));

/** The version of this package. */
export const version: string = file === undefined ? 'unknown' : JSON.parse(readFileSync(file, 'utf8')).version;
