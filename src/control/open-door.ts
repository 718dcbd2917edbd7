import { setTimeout as sleep } from 'node:timers/promises';
import fastify from 'fastify';
import { messageOf, RingneckError, TryLaterError } from '../errors.ts';
import type { Log } from '../log.ts';
import { version as packageVersion } from '../version.ts';
import { ensureAddress } from './address.ts';
import { beginAnswer } from './answer.ts';
import { type Call, isDetached, type Line, type Operations } from './operations.ts';

const CLOSE_PATIENCE_MS = 10_000;

/**
 * Listens for other commands in the data folder. The caller owns the folder (it holds the warehouse's lock), so a socket that lies there is a dead
 * owner's and is replaced; close the door before giving the lock back. Closing stops the operations that run and waits for them, up to 10 s.
 */
export async function openDoor<Own extends Operations>({
  folder,
  operations,
  log,
  version = packageVersion,
}: {
  folder: string;
  operations: Own;
  log: Log;
  version?: string;
}): Promise<{ close(): Promise<void> }> {
  const running = new Map<string, { controller: AbortController; done: Promise<void> }>();
  const app = fastify({ forceCloseConnections: true });

  app.get('/version', () => ({ version, pid: process.pid }));

  app.post<{ Params: { name: string }; Body: Call }>('/operations/:name', (request, reply) => {
    const { name } = request.params;
    const { id, input } = request.body;
    const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
    if (operation === undefined) return reply.code(404).send({ message: `no operation is called ${name}` });

    const controller = new AbortController();
    reply.hijack();
    const answer = beginAnswer(reply.raw);
    reply.raw.on('close', () => {
      if (!reply.raw.writableFinished && !isDetached(input)) controller.abort(new RingneckError('Interrupted.', 130));
    });
    const done = finalLine(() => operation(input as never, { emit: answer.event, signal: controller.signal }), controller.signal).then(
      async ({ line, error }) => {
        if (error !== undefined) logEnd(log, name, error);
        if (answer.leftOut > 0) log.warn({ operation: name, events: answer.leftOut }, 'a caller did not read in time: events left out');
        await answer.end(line);
        running.delete(id);
      },
    );
    running.set(id, { controller, done });
    return reply;
  });

  app.post<{ Params: { id: string } }>('/operations/:name/:id/stop', (request, reply) => {
    const call = running.get(request.params.id);
    call?.controller.abort(new RingneckError('Interrupted.', 130));
    return reply.code(call ? 204 : 404).send();
  });

  const address = ensureAddress(folder);
  try {
    await app.listen({ path: address.listenAt });
    address.publish();
  } catch (error) {
    await app.close();
    address.remove();
    throw new RingneckError(`${folder} cannot have a door (control.sock) for other commands: ${messageOf(error)}.`, 1, { cause: error });
  }

  return {
    async close() {
      address.remove();
      const reason = new TryLaterError(`The process that owns ${folder} (PID ${process.pid}) is stopping.`);
      for (const { controller } of running.values()) controller.abort(reason);
      const patience = new AbortController();
      await Promise.race([
        Promise.all([...running.values()].map(call => call.done)),
        sleep(CLOSE_PATIENCE_MS, undefined, { signal: patience.signal }).catch(() => {}),
      ]);
      patience.abort();
      await app.close();
    },
  };
}

function logEnd(log: Log, operation: string, error: unknown): void {
  if (error instanceof RingneckError) log.info({ operation, reason: error.message }, 'an operation through the door ended early');
  else log.error({ operation, err: error }, 'an operation through the door failed');
}

/** The last line of an answer, as text, and what went wrong. */
async function finalLine(run: () => Promise<unknown>, signal: AbortSignal): Promise<{ line: string; error?: unknown }> {
  try {
    return { line: textOf({ result: (await run()) ?? null }) };
  } catch (thrown) {
    // What an aborted operation throws is a consequence; the reason says what happened.
    const error = signal.aborted && !(thrown instanceof RingneckError) ? signal.reason : thrown;
    const { name, exitCode } = error instanceof RingneckError ? error : new RingneckError('');
    return { line: textOf({ error: { name, message: messageOf(error), exitCode } }), error };
  }
}

const textOf = (line: Line) => JSON.stringify(line);
