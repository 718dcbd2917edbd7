import { randomUUID } from 'node:crypto';
import { RingneckError, TryLaterError, UsageError } from '../../base/errors.ts';
import type { Call, Line } from './command.ts';
import { linesOf, send, textOf } from './request.ts';

/** The process that answers at a control socket. */
export interface OwnerProcess {
  folder: string;
  address: string;
  pid: number;
}

/** How long a caller waits: for the first sign of life, between two of them, and for the result after a stop. */
export interface Patience {
  firstWordMs: number;
  silenceMs: number;
  stopMs: number;
}

/** Has the owner run one command: hands on its events, and returns or throws how it ends. */
export async function call(
  owner: OwnerProcess,
  {
    name,
    input,
    onEvent,
    signal,
    patience,
  }: { name: string; input: unknown; onEvent: ((event: unknown) => void) | undefined; signal: AbortSignal | undefined; patience: Patience },
): Promise<unknown> {
  if (signal?.aborted) throw new RingneckError('Interrupted.', 130);
  const who = `the process that owns ${owner.folder} (PID ${owner.pid})`;
  const path = `/commands/${encodeURIComponent(name)}`;
  const body: Call = { id: randomUUID(), input };
  const giveUp = new AbortController();
  const quiet = watchSilence(patience, () => giveUp.abort(new TryLaterError(`No answer from ${who}. Try again later.`)));

  const wentAway = (cause?: Error) => new TryLaterError(`${capital(who)} went away before it had answered. Try again later.`, { cause });

  let begun = false;
  let stopping: NodeJS.Timeout | undefined;
  const stop = () => {
    stopping ??= setTimeout(() => {
      giveUp.abort(new RingneckError(`Interrupted; ${who} has not stopped yet.`, 130));
    }, patience.stopMs);
    // A stop that overtakes its call would find nothing to stop. When it fails, the end of the connection says the same.
    if (begun)
      send(owner.address, { method: 'POST', path: `${path}/${body.id}/stop`, signal: giveUp.signal })
        .then(textOf)
        .catch(() => {});
  };
  signal?.addEventListener('abort', stop);

  try {
    const response = await send(owner.address, { method: 'POST', path, body, signal: giveUp.signal });
    if (response.statusCode !== 200) throw new RingneckError(`${capital(who)} refused ${name}: ${await textOf(response)}`);
    for await (const line of linesOf(response)) {
      quiet.heard();
      if (!begun) {
        begun = true;
        if (signal?.aborted) stop();
      }
      if ('result' in line) return line.result;
      if (line.error) throw errorOf(line.error);
      if ('event' in line) onEvent?.(line.event);
    }
    throw wentAway();
  } catch (error) {
    if (giveUp.signal.aborted) throw giveUp.signal.reason;
    // The socket's errors have a code; the others are the command's, or of the caller's onEvent.
    throw error instanceof Error && 'code' in error ? wentAway(error) : error;
  } finally {
    signal?.removeEventListener('abort', stop);
    clearTimeout(stopping);
    quiet.end();
    // Without a result this ends the connection, and with it the command; after one it does nothing.
    giveUp.abort();
  }
}

/** Calls `whenSilent` when nothing is heard for too long. */
function watchSilence({ firstWordMs, silenceMs }: Patience, whenSilent: () => void): { heard(): void; end(): void } {
  // Counted in ticks: after a Ctrl-Z and fg the clock has gone on, and what the owner said meanwhile waits to be read.
  const tickMs = Math.min(1000, firstWordMs / 10);
  let left = firstWordMs;
  const timer = setInterval(() => {
    left -= tickMs;
    if (left <= 0) whenSilent();
  }, tickMs);
  return {
    heard() {
      left = silenceMs;
    },
    end() {
      clearInterval(timer);
    },
  };
}

/** The error that the command ended with, as this process would have made it. */
function errorOf({ name, message, exitCode }: NonNullable<Line['error']>): RingneckError {
  if (name === 'UsageError') return new UsageError(message);
  if (name === 'TryLaterError') return new TryLaterError(message);
  return new RingneckError(message, exitCode);
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
