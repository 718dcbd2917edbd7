import { writeSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
import { wholeCost } from './task.ts';

/** Loaded before all else by a process that is measured: it tells at its end, through its fourth pipe, what it cost from its start. */
if (isMainThread) process.on('exit', () => writeSync(3, JSON.stringify(wholeCost())));
