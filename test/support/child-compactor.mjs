// Compacts a warehouse and kills itself at one of its statements, or before or after the files change places:
// `node child-compactor.mjs <compiled folder> <file> <number of the statement | before the rename | after the rename |
// after a commit | never>`.
// Where it lives on it says how many statements there were.
import fs from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, path, at] = process.argv.slice(2);
const load = file => import(pathToFileURL(`${folder}/${file}`).href);
const { DuckDBConnection } = createRequire(import.meta.url)('@duckdb/node-api');
const die = () => process.kill(process.pid, 'SIGKILL');
const rename = fs.renameSync;
fs.renameSync = (from, to) => {
  if (at === 'before the rename') die();
  rename(from, to);
  if (at === 'after the rename') die();
};
syncBuiltinESMExports();
const { Warehouse } = await load('src/warehouse/warehouse.js');
const { resources } = await load('schema/index.js');
const warehouse = await Warehouse.open({ path, resources });
let statements = 0;
const { run } = DuckDBConnection.prototype;
DuckDBConnection.prototype.run = function (...given) {
  if (String(++statements) === at) die();
  return run.apply(this, given);
};
await warehouse.compact();
if (at === 'after a commit') {
  await warehouse.record([{ table: 'sync.meta', key: { key: 'said' }, row: { value: 'after it was compacted' } }]);
  die();
}
await warehouse.close();
console.log(statements);
