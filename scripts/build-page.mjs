// Runs after tsc, with the folder that it wrote to: the console's page, whose paths begin with a prefix that the server fills in.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { build } from 'vite';

const dist = resolve(process.argv[2]);
const common = {
  configFile: false,
  logLevel: 'warn',
  root: fileURLToPath(new URL('../src/console/page', import.meta.url)),
  publicDir: false,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
};

await build({
  ...common,
  base: '/RINGNECK-PREFIX/',
  // The server fills the prefix into the page alone.
  experimental: { renderBuiltUrl: (_, { hostType }) => (hostType === 'html' ? undefined : { relative: true }) },
  build: {
    outDir: join(dist, 'console'),
    emptyOutDir: true,
    // A picture in the text of a style would be one more thing that the policy has to allow.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});

// The same charts for paper, as a module that needs no browser and no package.
await build({
  ...common,
  ssr: { noExternal: true },
  build: {
    ssr: 'paper/report.tsx',
    outDir: join(dist, 'src/console'),
    emptyOutDir: false,
    rolldownOptions: { output: { entryFileNames: 'paper.js' } },
  },
});

const assets = join(dist, 'console/assets');
for (const name of readdirSync(assets)) writeFileSync(join(assets, `${name}.br`), brotliCompressSync(readFileSync(join(assets, name))));
