import { type MessagePort, workerData } from 'node:worker_threads';
import pg from 'pg';
import { messageOf } from '../base/errors.ts';
import { type CataloguePlace, configOf } from './catalogue.ts';

/** What the thread is started with. */
export interface ThreadData {
  place: CataloguePlace;
  port: MessagePort;
  /** One number, set to 1 when an answer is at the port. */
  flag: Int32Array;
}

export interface Asked {
  id: number;
  sql: string;
  values: unknown[];
}

export type Answered = { id: number } & ({ rows: number } | { error: string });

const { place, port, flag } = workerData as ThreadData;
let client: pg.Client | undefined;

async function connect(): Promise<pg.Client> {
  const made = new pg.Client(configOf(place));
  made.on('error', () => {
    if (client === made) client = undefined;
  });
  await made.connect();
  return made;
}

async function answer({ id, sql, values }: Asked): Promise<Answered> {
  try {
    client ??= await connect();
    return { id, rows: (await client.query(sql, values)).rowCount ?? 0 };
  } catch (error) {
    client?.end().catch(() => undefined);
    client = undefined;
    return { id, error: messageOf(error) };
  }
}

port.on('message', async (asked: Asked) => {
  const answered = await answer(asked);
  port.postMessage(answered);
  Atomics.store(flag, 0, 1);
  Atomics.notify(flag, 0);
});
