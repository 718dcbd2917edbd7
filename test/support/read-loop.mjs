// Opens, asks and closes a file in a loop until its standard input ends: node read-loop.mjs <file> <sql>. Says what it saw at the end.
import { DuckDBInstance } from '@duckdb/node-api';

const [path, sql] = process.argv.slice(2);
const seen = [];
let ended = false;
process.stdin.resume().once('end', () => {
  ended = true;
});
do {
  const instance = await DuckDBInstance.create(path, { access_mode: 'READ_ONLY' });
  const connection = await instance.connect();
  const [row] = (await connection.runAndReadAll(sql)).getRows();
  seen.push(row.map(Number));
  connection.closeSync();
  instance.closeSync();
} while (!ended);
console.log(JSON.stringify(seen));
