import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf, RingneckError, shownMessageOf, TryLaterError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { version as packageVersion } from '../../base/version.ts';
import { type Address, ensureAddress } from './address.ts';
import { type Answer, beginAnswer } from './answer.ts';
import { type Call, type Commands, isDetached, type Line } from './command.ts';
import { findWarehouseIdentity } from './identity.ts';

const CLOSE_PATIENCE_MS = 10_000;
/** Of a call: a caller gone wild must not fill the owner's memory. */
const MOST_CHARACTERS = 10_000_000;

interface Parts {
  folder: string;
  commands: Commands;
  log: Log;
  version?: string;
  /** Whether the owner ends with the command that it has begun with. */
  isPassing?: boolean;
}

/**
 * Listens for other commands in the data folder. The caller owns the folder (it holds the warehouse's lock), so a socket that lies there is a dead
 * owner's and is replaced; close the control socket before giving the lock back. Closing stops the commands that run and waits for them, up to 10 s.
 */
export async function serveControl(parts: Parts): Promise<{ close(): Promise<void> }> {
  const server = new ControlServer(parts);
  await server.listen();
  return server;
}

class ControlServer {
  readonly #folder: string;
  readonly #commands: Commands;
  readonly #log: Log;
  readonly #version: string;
  readonly #isPassing: boolean;
  readonly #address: Address;
  readonly #running = new Map<string, { controller: AbortController; done: Promise<void> }>();
  readonly #server = createServer((request, response) => {
    // Of what is no call, or breaks off before it is one.
    this.#serve(request, response).catch(error => refuse(response, 400, messageOf(error)));
  });

  constructor({ folder, commands, log, version = packageVersion, isPassing = false }: Parts) {
    this.#folder = folder;
    this.#commands = commands;
    this.#log = log;
    this.#version = version;
    this.#isPassing = isPassing;
    this.#address = ensureAddress(folder);
  }

  async listen(): Promise<void> {
    try {
      await once(this.#server.listen(this.#address.listenAt), 'listening');
      this.#address.publish();
    } catch (error) {
      await closeServer(this.#server);
      this.#address.remove();
      throw new RingneckError(`${this.#folder} cannot have a control socket (control.sock) for other commands: ${messageOf(error)}.`, 1, {
        cause: error,
      });
    }
  }

  async close(): Promise<void> {
    this.#address.remove();
    const reason = new TryLaterError(
      `The process that owns ${this.#folder} (PID ${process.pid}) is stopping. Try again: what it has begun goes on at the next start.`,
    );
    for (const { controller } of this.#running.values()) controller.abort(reason);
    const patience = new AbortController();
    await Promise.race([
      Promise.all([...this.#running.values()].map(call => call.done)),
      sleep(CLOSE_PATIENCE_MS, undefined, { signal: patience.signal }).catch(() => {}),
    ]);
    patience.abort();
    await closeServer(this.#server);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [kind, name = '', id = '', verb] = (request.url ?? '').split('/').slice(1).map(decodeURIComponent);
    if (request.method === 'GET' && request.url === '/version') this.#tellVersion(response);
    else if (request.method === 'POST' && kind === 'commands' && verb === 'stop') this.#stop(id, response);
    else if (request.method === 'POST' && kind === 'commands' && !id) await this.#call(name, request, response);
    else refuse(response, 404, 'there is nothing here');
  }

  #tellVersion(response: ServerResponse): void {
    const warehouse = findWarehouseIdentity(this.#folder) ?? null;
    response.end(JSON.stringify({ version: this.#version, pid: process.pid, warehouse, isPassing: this.#isPassing }));
  }

  #stop(id: string, response: ServerResponse): void {
    const call = this.#running.get(id);
    call?.controller.abort(new RingneckError('Interrupted.', 130));
    response.writeHead(call ? 204 : 404).end();
  }

  async #call(name: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const command = Object.hasOwn(this.#commands, name) ? this.#commands[name] : undefined;
    if (command === undefined) return refuse(response, 404, `no command is called ${name}`);
    const body = await bodyOf(request);
    if (body === undefined)
      return refuse(response, 413, `a call has ${MOST_CHARACTERS} characters at most: give less at once, a file in parts`);
    const { id, input }: Call = JSON.parse(body);
    const controller = new AbortController();
    const answer = beginAnswer(response);
    response.on('close', () => {
      if (!response.writableFinished && !isDetached(input)) controller.abort(new RingneckError('Interrupted.', 130));
    });
    const done = this.#run(
      name,
      () => command(input as never, { emit: answer.event, signal: controller.signal }),
      answer,
      controller.signal,
    );
    this.#running.set(id, { controller, done: done.finally(() => this.#running.delete(id)) });
  }

  /** Has the command run to its end, which the answer tells. */
  async #run(name: string, run: () => Promise<unknown>, answer: Answer, signal: AbortSignal): Promise<void> {
    const { line, error } = await finalLine(() => run().catch(error => this.#tellReplaced(error)), signal);
    if (error !== undefined) logEnd(this.#log, name, error);
    if (answer.leftOut > 0) this.#log.warn({ command: name, events: answer.leftOut }, 'a caller did not read in time: events left out');
    await answer.end(line);
  }

  #tellReplaced(error: unknown): never {
    if (!isReplaced(error)) throw error;
    throw new TryLaterError(
      `the program of the process that owns ${this.#folder} (PID ${process.pid}) was replaced since it started: restart \`ringneck up\``,
      { cause: error },
    );
  }
}

const PROGRAM = new URL('../../..', import.meta.url).href;

/** Whether a file of the program is gone that is loaded only when it is needed: a build or an update gives such files new names. */
function isReplaced(error: unknown): boolean {
  if (!(error instanceof Error && 'code' in error && 'url' in error)) return false;
  return error.code === 'ERR_MODULE_NOT_FOUND' && String(error.url).startsWith(PROGRAM);
}

/** Every connection too: one that is kept would keep it open. */
function closeServer(server: Server): Promise<unknown> {
  const closed = new Promise(resolve => server.close(resolve));
  server.closeAllConnections();
  return closed;
}

/** Undefined where it is too long. All of it is read all the same: who is still sending would not hear the answer. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  let text = '';
  for await (const part of request.setEncoding('utf8')) if (text.length <= MOST_CHARACTERS) text += part;
  return text.length <= MOST_CHARACTERS ? text : undefined;
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status).end(message);
}

function logEnd(log: Log, command: string, error: unknown): void {
  const told = { command, reason: messageOf(error) };
  // The page of a console asks again and again while the folder is closed.
  if (error instanceof TryLaterError) log.debug(told, 'a command through the control socket is to be tried later');
  else if (error instanceof RingneckError) log.info(told, 'a command through the control socket ended early');
  else log.error({ command, err: error }, 'a command through the control socket failed');
}

/** The last line of an answer, as text, and what went wrong. */
async function finalLine(run: () => Promise<unknown>, signal: AbortSignal): Promise<{ line: string; error?: unknown }> {
  try {
    return { line: formatLine({ result: (await run()) ?? null }) };
  } catch (thrown) {
    // What an aborted command throws is a consequence; the reason says what happened.
    const error = signal.aborted && !(thrown instanceof RingneckError) ? signal.reason : thrown;
    const { name, exitCode } = error instanceof RingneckError ? error : new RingneckError('');
    return { line: formatLine({ error: { name, message: shownMessageOf(error), exitCode } }), error };
  }
}

const formatLine = (line: Line) => JSON.stringify(line);
