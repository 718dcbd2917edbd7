// Loaded before a program (node --import), kills it with SIGKILL right after the n-th time that a file of a name, or of any, is put in its
// place: KILL_AFTER_RENAME="accounts.secret 1", "* 3".
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename } from 'node:path';

const [name, count] = process.env.KILL_AFTER_RENAME.split(' ');
const { renameSync } = fs;
let left = Number(count);

fs.renameSync = (from, to) => {
  renameSync(from, to);
  if ((name === '*' || basename(String(to)) === name) && --left === 0) process.kill(process.pid, 'SIGKILL');
};
syncBuiltinESMExports();
