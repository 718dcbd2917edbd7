// Runs after tsc, with the folder that it wrote to: the console's page, whose paths begin with a prefix that the server fills in.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { build } from 'vite';

await build({
  configFile: false,
  logLevel: 'warn',
  root: fileURLToPath(new URL('../src/console/page', import.meta.url)),
  base: '/RINGNECK-PREFIX/',
  publicDir: false,
  // The server fills the prefix into the page alone.
  experimental: { renderBuiltUrl: (_, { hostType }) => (hostType === 'html' ? undefined : { relative: true }) },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: join(resolve(process.argv[2]), 'console'),
    emptyOutDir: true,
    // A picture in the text of a style would be one more thing that the policy has to allow.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});

const assets = join(resolve(process.argv[2]), 'console/assets');
for (const name of readdirSync(assets)) writeFileSync(join(assets, `${name}.br`), brotliCompressSync(readFileSync(join(assets, name))));
