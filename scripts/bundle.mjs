// Runs after tsc and build-page.mjs, with the folder that it wrote to: what starts as one program of a few files takes half the time of the hundreds that it is made of.
import { chmodSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { rolldown } from 'rolldown';

// As rolldown names what it reads: the folder may be reached by a symbolic link.
const dist = realpathSync(resolve(process.argv[2]));
/** What is started as a process, by the name of its bundle. */
const PROGRAMS = {
  ringneck: 'src/cli/main.js',
  query: 'src/app/query/child.js',
  questions: 'src/app/questions/child.js',
  search: 'src/app/erase/search-child.js',
};
const out = join(dist, 'bundle');
const duckdb = join(dist, 'src/warehouse/store/duckdb.js');

const PACKAGE = /.*[\\/]node_modules[\\/](?!\.)((?:@[^\\/]+[\\/])?[^\\/]+)/;

rmSync(out, { recursive: true, force: true });
const bundle = await rolldown({
  input: Object.fromEntries(Object.entries(PROGRAMS).map(([name, path]) => [name, join(dist, path)])),
  platform: 'node',
  // They look for files of their own beside them, or are loaded by few commands.
  external: ['@duckdb/node-bindings', /^@electric-sql\//, /^@fastify\//, 'fastify', 'msgpackr-extract', 'open', 'pg', 'pino-pretty'],
  plugins: [
    {
      // Of its hundred files one: as they are it takes 60 ms to load them.
      name: 'duckdb',
      transform: (_, id) => (id === duckdb ? "export { default as duckdb } from '@duckdb/node-api';" : null),
    },
    {
      // What a module finds by its own place is where it was.
      name: 'places',
      transform(code, id) {
        if (!id.startsWith(dist + sep) || !code.includes('import.meta.url')) return null;
        const place = JSON.stringify(relative(out, id).replaceAll(sep, '/'));
        return { code: code.replaceAll('import.meta.url', `new URL(${place}, import.meta.url).href`), map: null };
      },
    },
  ],
});
await bundle.write({
  dir: out,
  format: 'esm',
  entryFileNames: '[name].js',
  chunkFileNames: '[name]-[hash].js',
  // A file for each package: what a command does not need it does not load.
  codeSplitting: {
    groups: [
      // What others build on is not put into the file of the first of them.
      { debugName: 'zod', test: /node_modules[\\/]zod[\\/]/, name: 'zod', priority: 1 },
      { debugName: 'packages', test: PACKAGE, name: id => PACKAGE.exec(id)[1].replace('/', '+') },
    ],
  },
});
await bundle.close();
for (const [name, path] of Object.entries(PROGRAMS)) {
  const file = join(dist, path);
  const bundled = relative(dirname(file), join(out, `${name}.js`)).replaceAll(sep, '/');
  writeFileSync(file, `#!/usr/bin/env -S node --\nimport ${JSON.stringify(bundled)};\n`);
}
// npm makes a program executable only when it links it first: a checkout that is made or built again would not run by `npx ringneck`.
chmodSync(join(dist, PROGRAMS.ringneck), 0o755);
