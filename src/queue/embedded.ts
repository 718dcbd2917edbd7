import { createPostgresBackend } from 'bullmq';
import type { Log } from '../base/log.ts';
import type { Backend } from './backend.ts';
import { ensureQueueRoom, hasQueueRoom, openDatabase } from './database.ts';
import { Pool } from './pool.ts';

/** The queue inside of this process: BullMQ's PostgreSQL backend on PGlite in a folder. */
export async function openEmbedded(folder: string, log: Log): Promise<Backend> {
  const database = await openDatabase(folder, log);
  const pool = new Pool(database, { ensureRoom: () => ensureQueueRoom(folder) });
  return {
    kind: 'embedded',
    factory: (name, options, use) => createPostgresBackend(name, { ...options, connection: pool }, use),
    worker: {
      // Seconds. New jobs announce themselves and the next delayed one is known: this is for a clock that jumps and a laptop that slept.
      drainDelay: 10,
      // Nobody else could take the job, so a thread that was busy for a while must not lose it.
      lockDuration: 300_000,
      stalledInterval: 30_000,
    },
    // BullMQ makes two temporary tables for it: 9.5 ms and 0.07 more for each job, against 1.1 ms for one alone.
    togetherFrom: 9,
    ready: async () => undefined,
    // Between its opening and its end nobody else touches it.
    ping: async () => void (await pool.query('SELECT 1', [])),
    closing: () => pool.closing(),
    end: async () => {
      await pool.end();
      // Its last words need room too. Without them it is opened as after a kill.
      if (hasQueueRoom(folder)) await database.close();
    },
  };
}
