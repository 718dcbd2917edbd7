import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { escapeHtml } from '../../base/html.ts';

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Where the build has put the page. */
const BUILT = fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? '../../../dist/console/' : '../../../console/', import.meta.url));

export interface Asset {
  type: string;
  body: Buffer;
  compressed: Buffer;
}

/** The built page: its scripts and styles, whose names change with what is in them, and the one HTML page that loads them. */
export class Assets {
  readonly #files: ReadonlyMap<string, Asset>;
  readonly #page: string;

  constructor(folder = BUILT) {
    const names = readdirSync(join(folder, 'assets')).filter(name => !name.endsWith(COMPRESSED));
    this.#files = new Map(names.map(name => [name, assetOf(join(folder, 'assets', name))]));
    this.#page = readFileSync(join(folder, 'index.html'), 'utf8');
  }

  find(name: string): Asset | undefined {
    return this.#files.get(name);
  }

  /** @param prefix in front of all paths, as a proxy is asked */
  page(prefix: string): string {
    return this.#page.replaceAll('/RINGNECK-PREFIX/', `${escapeHtml(prefix)}/`);
  }
}

/** Beside each file the build has put the same in Brotli: to compress the editor takes a second. */
const COMPRESSED = '.br';

function assetOf(path: string): Asset {
  const type = TYPES[extname(path)] ?? 'application/octet-stream';
  return { type, body: readFileSync(path), compressed: readFileSync(`${path}${COMPRESSED}`) };
}
