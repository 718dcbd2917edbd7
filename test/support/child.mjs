// What the tests of the one owner run in a process of its own, with DuckDB alone: `node child.mjs <what> <file>`. Says "ready" when it holds the file.
import { setTimeout } from 'node:timers/promises';
import { DuckDBInstance } from '@duckdb/node-api';

const [what, path, argument] = process.argv.slice(2);
const instance = await DuckDBInstance.create(path, what === 'own' ? {} : { access_mode: 'READ_ONLY' });
const connection = await instance.connect();
console.log('ready');

if (what === 'own') for await (const _ of process.stdin);
else if (what === 'hold') await setTimeout(Number(argument));
else {
  // Reads at each line of its standard input.
  for await (const line of process.stdin) {
    const reader = await connection.runAndReadAll(String(line).trim());
    console.log(JSON.stringify(reader.getRowsJson()));
  }
}
connection.closeSync();
instance.closeSync();
