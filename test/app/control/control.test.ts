import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { CommandContext, Commands } from '../../../src/app/control/command.ts';
import { connectControl } from '../../../src/app/control/connect-control.ts';
import { findWarehouseIdentity } from '../../../src/app/control/identity.ts';
import { serveControl } from '../../../src/app/control/serve-control.ts';
import { ensureUnowned } from '../../../src/app/ensure-unowned.ts';
import { RingneckError, TryLaterError, UsageError } from '../../../src/base/errors.ts';
import { createLog, silentLog } from '../../../src/base/log.ts';

const quick = { firstWordMs: 200, silenceMs: 200, stopMs: 300 };

let folder: string;
const opened: { close(): Promise<void> }[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringneck-test-'));
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map(control => control.close()));
  rmSync(folder, { recursive: true, force: true });
});

test('who is to stay waits for a command that ends, not for one that goes on, and is told at once of another that stays', async () => {
  const passing = await serveControl({ folder, commands: {}, log: silentLog, isPassing: true });
  opened.push(passing);
  await expect(ensureUnowned({ data: folder, log: silentLog }, 0)).rejects.toThrow(
    `${folder} is owned by a command that still runs (PID ${process.pid}): try again when it has ended`,
  );
  const waiting = ensureUnowned({ data: folder, log: silentLog });
  await passing.close();
  expect(await waiting).toBeUndefined();
  opened.push(await serveControl({ folder, commands: {}, log: silentLog }));
  await expect(ensureUnowned({ data: folder, log: silentLog })).rejects.toThrow(
    `${folder} is owned by a running ringneck (PID ${process.pid}): end it first`,
  );
});

async function app<Own extends Commands>(commands: Own, at = folder, log = silentLog) {
  const server = await serveControl({ folder: at, commands, log });
  opened.push(server);
  const control = await connectControl<Own>(at);
  if (control === undefined) throw new Error('nobody answers');
  return { server, control };
}

/** A net server at control.sock that does what an owner should not. */
async function impostor(onConnection: (socket: Socket) => void): Promise<void> {
  const sockets: Socket[] = [];
  const server = createServer(socket => {
    sockets.push(socket.on('error', () => {}));
    onConnection(socket);
  });
  await new Promise<void>(resolve => server.listen(join(folder, 'control.sock'), resolve));
  opened.push({
    close: () =>
      new Promise(resolve => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  });
}

/** Leaves a socket file behind, as a process does that was killed. */
async function leaveSocket(path: string): Promise<void> {
  const server: Server = createServer();
  await new Promise<void>(resolve => server.listen(`${path}.made`, resolve));
  // The server removes the path it was made at, so it no longer finds this one.
  const { renameSync } = await import('node:fs');
  renameSync(`${path}.made`, path);
  await new Promise(resolve => server.close(resolve));
  expect(lstatSync(path).isSocket()).toBe(true);
}

const untilAborted = (signal: AbortSignal) => new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()));

async function exitOf(promise: Promise<unknown>): Promise<{ kind: unknown; exitCode: number; message: string }> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof RingneckError)) throw new Error(`not refused as it should be: ${error}`);
  return { kind: error.constructor, exitCode: error.exitCode, message: error.message };
}

test('what owners left that were killed before their control socket could be seen is removed by the next one; what is not theirs stays', async () => {
  for (const name of ['.control-aB3dE6', '.control-xyz123', '.control-of-mine']) mkdirSync(join(folder, name), { mode: 0o700 });
  await leaveSocket(join(folder, '.control-aB3dE6', 's'));
  writeFileSync(join(folder, '.control-xyz123', 'theirs'), '');
  const control = await serveControl({ folder, commands: {}, log: silentLog });
  opened.push(control);
  expect(readdirSync(folder).sort()).toEqual(['.control-of-mine', '.control-xyz123', 'control.sock']);
});

test('events come in order, then the result; several calls at a time', async () => {
  const { control } = await app({
    async count(input: { to: number }, context: CommandContext<{ at: number }>) {
      for (let at = 1; at <= input.to; at++) {
        context.emit({ at });
        await sleep(1);
      }
      return { counted: input.to };
    },
    async nothing() {},
  });
  expect(control.pid).toBe(process.pid);
  const answers = await Promise.all(
    [3, 20, 1].map(async to => {
      const events: number[] = [];
      const result = await control.call('count', { to }, { onEvent: event => events.push(event.at) });
      return { result, events };
    }),
  );
  expect(answers).toEqual([3, 20, 1].map(to => ({ result: { counted: to }, events: Array.from({ length: to }, (_, index) => index + 1) })));
  expect(await control.call('nothing', undefined)).toBeNull();
});

test('an error arrives with its message, kind and exit code; of who may try later there is no line, of an unexpected one its stack', async () => {
  const lines: string[] = [];
  const log = createLog({ level: 'info', pretty: false, stream: { write: line => void lines.push(line) } });
  const { control } = await app(
    {
      async usage() {
        throw new UsageError('no account is called bert');
      },
      async later() {
        throw new TryLaterError('busy');
      },
      async own() {
        throw new RingneckError('three windows failed', 3);
      },
      async bug() {
        throw new TypeError('x is undefined');
      },
      async unprintable() {
        return 1n;
      },
    },
    folder,
    log,
  );
  expect(await exitOf(control.call('usage', {} as never))).toEqual({ kind: UsageError, exitCode: 2, message: 'no account is called bert' });
  expect(await exitOf(control.call('later', {} as never))).toEqual({ kind: TryLaterError, exitCode: 75, message: 'busy' });
  expect(lines.map(line => JSON.parse(line).reason)).toEqual(['no account is called bert']);
  expect(await exitOf(control.call('own', {} as never))).toEqual({ kind: RingneckError, exitCode: 3, message: 'three windows failed' });
  expect(await exitOf(control.call('bug', {} as never))).toEqual({ kind: RingneckError, exitCode: 1, message: 'x is undefined' });
  expect(lines.join('')).toContain('TypeError: x is undefined');
  expect(await exitOf(control.call('unprintable', {} as never))).toMatchObject({ exitCode: 1, message: expect.stringContaining('BigInt') });
});

test('an error of the caller’s own onEvent is not mistaken for the owner’s', async () => {
  const { control } = await app({
    async speak(_input: undefined, context: CommandContext<string>) {
      context.emit('hello');
      await untilAborted(context.signal);
    },
  });
  const onEvent = () => {
    throw new TypeError('cannot draw');
  };
  await expect(control.call('speak', undefined, { onEvent })).rejects.toThrow(new TypeError('cannot draw'));
});

test('a call of more than ten million characters is refused, and the next one is answered', async () => {
  const { control } = await app({
    async measure(input: { text: string }) {
      return input.text.length;
    },
  });
  const owned = `The process that owns ${folder} (PID ${process.pid})`;
  expect(await exitOf(control.call('measure', { text: 'x'.repeat(15_000_000) }))).toEqual({
    kind: RingneckError,
    exitCode: 1,
    message: `${owned} refused measure: a call has 10000000 characters at most: give less at once, a file in parts`,
  });
  expect(await control.call('measure', { text: 'x'.repeat(9_999_000) })).toBe(9_999_000);
});

test('an command that the owner does not know is refused', async () => {
  await app({});
  const control = await connectControl<{ other: () => Promise<void> }>(folder);
  expect(await exitOf(control!.call('other', undefined as never))).toMatchObject({
    exitCode: 1,
    message: expect.stringContaining('no command is called other'),
  });
  for (const name of ['constructor', '__proto__', '../version']) {
    const any = (await connectControl<Record<string, () => Promise<void>>>(folder))!;
    expect(await exitOf(any.call(name, undefined as never))).toMatchObject({ exitCode: 1 });
  }
});

test('an abort stops the command, and what it still says is waited for', async () => {
  const reasons: unknown[] = [];
  const { control } = await app({
    async run(_input: undefined, { emit, signal }: CommandContext<string>) {
      emit('running');
      await untilAborted(signal);
      reasons.push(signal.reason);
      await sleep(50);
      emit('stopped');
      return { state: 'stopped' };
    },
  });
  const stop = new AbortController();
  const events: string[] = [];
  const onEvent = (event: string) => {
    events.push(event);
    stop.abort();
  };
  expect(await control.call('run', undefined, { onEvent, signal: stop.signal })).toEqual({ state: 'stopped' });
  expect(events).toEqual(['running', 'stopped']);
  expect(reasons).toEqual([expect.objectContaining({ exitCode: 130 })]);
});

test('an abort that comes before the owner has answered is not lost', async () => {
  const { control } = await app({
    async run(_input: undefined, { signal }: CommandContext<never>) {
      await untilAborted(signal);
      return 'stopped';
    },
  });
  const stop = new AbortController();
  const answer = control.call('run', undefined, { signal: stop.signal });
  stop.abort();
  expect(await answer).toBe('stopped');
  expect(await exitOf(control.call('run', undefined, { signal: stop.signal }))).toMatchObject({ exitCode: 130 });
});

test('what an aborted command throws is exit code 130', async () => {
  const { control } = await app({
    async run(_input: undefined, { emit, signal }: CommandContext<string>) {
      emit('running');
      await sleep(60_000, undefined, { signal });
    },
  });
  const stop = new AbortController();
  const answer = exitOf(control.call('run', undefined, { onEvent: () => stop.abort(), signal: stop.signal }));
  expect(await answer).toMatchObject({ exitCode: 130, message: 'Interrupted.' });
});

test('an command that does not stop is left after some seconds', async () => {
  let end = () => {};
  const ended = new Promise<void>(resolve => {
    end = resolve;
  });
  const commands = {
    async run(_input: undefined, { emit }: CommandContext<string>) {
      emit('running');
      await ended;
    },
  };
  await app(commands);
  const control = await connectControl<typeof commands>(folder, { patience: { ...quick, firstWordMs: 5000, silenceMs: 5000 } });
  const stop = new AbortController();
  const answer = exitOf(control!.call('run', undefined, { onEvent: () => stop.abort(), signal: stop.signal }));
  expect(await answer).toMatchObject({ exitCode: 130, message: expect.stringContaining('has not stopped yet') });
  end();
});

test.each([
  [{ detach: false }, true],
  [{ detach: true }, false],
])('a caller that goes away with %j: aborted %s', async (input, aborted) => {
  const seen = { started: false, aborted: false };
  await app({
    async run(_input: { detach: boolean }, { signal, emit }: CommandContext<string>) {
      seen.started = true;
      signal.addEventListener('abort', () => {
        seen.aborted = true;
      });
      for (let i = 0; i < 30; i++) {
        emit('still here');
        await sleep(10);
      }
    },
  });
  // A caller that is killed sends no stop: its connection just ends.
  const raw = request({
    socketPath: join(folder, 'control.sock'),
    method: 'POST',
    path: '/commands/run',
    headers: { 'content-type': 'application/json' },
  });
  raw.on('error', () => {});
  raw.on('response', response => response.once('data', () => raw.destroy()));
  raw.end(JSON.stringify({ id: 'x', input }));
  await sleep(200);
  expect(seen).toEqual({ started: true, aborted });
});

test('a caller that does not read holds up nobody: the oldest events give way and the result comes', async () => {
  const lines: string[] = [];
  const log = createLog({ level: 'warn', pretty: false, stream: { write: line => void lines.push(line) } });
  let finished = false;
  await app(
    {
      async flood(_input: undefined, { emit }: CommandContext<string>) {
        for (let i = 0; i < 20_000; i++) {
          emit(`${i} ${'x'.repeat(200)}`);
          if (i % 1000 === 0) await sleep(0);
        }
        finished = true;
        return 'done';
      },
    },
    folder,
    log,
  );
  const raw = request({
    socketPath: join(folder, 'control.sock'),
    method: 'POST',
    path: '/commands/flood',
    headers: { 'content-type': 'application/json' },
  });
  raw.end(JSON.stringify({ id: 'x' }));
  const response = await new Promise<import('node:http').IncomingMessage>(resolve => raw.on('response', resolve));
  for (let i = 0; i < 200 && !finished; i++) await sleep(20);
  expect(finished).toBe(true);
  let text = '';
  for await (const part of response.setEncoding('utf8')) text += part;
  const answers = text.split('\n').filter(line => line !== '' && line !== '{}');
  expect(JSON.parse(answers.at(-1)!)).toEqual({ result: 'done' });
  expect(answers.at(-2)).toContain('"19999 ');
  expect(answers.length).toBeLessThan(15_000);
  await sleep(50);
  expect(lines.join('')).toContain('events left out');
});

test('heartbeats keep a quiet command alive for longer than the silence that is allowed', async () => {
  const commands = {
    async quiet() {
      await sleep(5000);
      return 'done';
    },
  };
  await app(commands);
  const control = await connectControl<typeof commands>(folder, { patience: { firstWordMs: 3000, silenceMs: 3000, stopMs: 1000 } });
  expect(await control!.call('quiet', undefined as never)).toBe('done');
});

test('closing stops what runs, hands on its last word, and leaves no socket', async () => {
  const { server, control } = await app({
    async run(_input: undefined, { emit, signal }: CommandContext<string>) {
      emit('running');
      await untilAborted(signal);
      await sleep(50);
      throw signal.reason;
    },
  });
  const answer = exitOf(control.call('run', undefined, { onEvent: () => void server.close() }));
  expect(await answer).toMatchObject({ kind: TryLaterError, exitCode: 75, message: expect.stringContaining('is stopping') });
  await server.close();
  expect(readdirSync(folder)).toEqual([]);
  expect(await connectControl(folder)).toBeUndefined();
  expect(await exitOf(control.call('run', undefined))).toMatchObject({
    kind: TryLaterError,
    message: expect.stringContaining('went away'),
  });
});

test('nobody answers: no folder, no socket, a dead owner’s socket, a file of that name', async () => {
  expect(await connectControl(join(folder, 'none'))).toBeUndefined();
  expect(await connectControl(folder)).toBeUndefined();
  await leaveSocket(join(folder, 'control.sock'));
  expect(await connectControl(folder)).toBeUndefined();
  rmSync(join(folder, 'control.sock'));
  writeFileSync(join(folder, 'control.sock'), '');
  expect(await connectControl(folder)).toBeUndefined();
});

test('a dead owner’s socket is replaced', async () => {
  await leaveSocket(join(folder, 'control.sock'));
  const { control } = await app({ echo: async (input: string) => input });
  expect(await control.call('echo', 'hello')).toBe('hello');
});

test('the socket, and a folder that the control socket makes, are their owner’s alone', async () => {
  const inner = join(folder, 'data');
  await app({}, inner);
  expect(statSync(inner).mode & 0o777).toBe(0o700);
  expect(readdirSync(inner)).toEqual(['control.sock']);
  expect(lstatSync(join(inner, 'control.sock')).isSocket()).toBe(true);
  expect(lstatSync(join(inner, 'control.sock')).mode & 0o777).toBe(0o600);
});

test.each([74, 75])('a path of up to 100 bytes is the socket itself, a longer one a link to the temporary folder (%d)', async letters => {
  const long = join(folder, 'd'.repeat(letters - folder.length + 13));
  mkdirSync(long);
  const path = join(long, 'control.sock');
  expect(path.length).toBe(letters + 27);
  const { server, control } = await app({ echo: async (input: string) => input }, long);
  expect(await control.call('echo', 'hello')).toBe('hello');
  expect(lstatSync(path).isSocket()).toBe(path.length <= 100);
  if (path.length <= 100) return;
  const place = dirname(readlinkSync(path));
  expect(statSync(place).mode & 0o777).toBe(0o700);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  await server.close();
  expect(existsSync(place)).toBe(false);
  expect(readdirSync(long)).toEqual([]);
});

test('what a dead owner left behind a long path is cleared away', async () => {
  const long = join(folder, 'd'.repeat(100));
  const path = join(long, 'control.sock');
  await app({}, long);
  const former = readlinkSync(path);
  const second = await app({ echo: async (input: string) => input }, long);
  expect(readlinkSync(path)).not.toBe(former);
  expect(existsSync(former)).toBe(false);
  expect(await second.control.call('echo', 'hello')).toBe('hello');
});

test('a folder in which nothing can be made is an error that names it', async () => {
  writeFileSync(join(folder, 'file'), '');
  await expect(serveControl({ folder: join(folder, 'file'), commands: {}, log: silentLog })).rejects.toThrow(/file/);
});

test('another version is told to restart `up`', async () => {
  const server = await serveControl({ folder, commands: {}, log: silentLog, version: '9.9.9' });
  opened.push(server);
  expect(await exitOf(connectControl(folder))).toEqual({
    kind: TryLaterError,
    exitCode: 75,
    message: expect.stringMatching(
      /^.* is owned by ringneck 9\.9\.9 \(PID \d+\), and this is ringneck \d+\.\d+\.\d+: restart `ringneck up`\.$/,
    ),
  });
});

test('an owner that accepts and says nothing is named', async () => {
  await impostor(() => {});
  expect(await exitOf(connectControl(folder, { patience: quick }))).toEqual({
    kind: TryLaterError,
    exitCode: 75,
    message: `Another process owns ${folder} and does not answer at its control.sock. Try again later, or end that process.`,
  });
});

const head = 'HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n';
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const hello = () =>
  `HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${JSON.stringify({ version: '1', pid: 77, warehouse: findWarehouseIdentity(folder) })}`;

test.each([
  ['says nothing', '', false, /^No answer from the process that owns .* \(PID 77\)/],
  ['falls silent', `${head}${chunk('{}\n')}`, false, /^No answer from the process that owns .* \(PID 77\)/],
  ['dies in the middle of a line', `${head}${chunk('{}\n{"res')}`, true, /^The process that owns .* \(PID 77\) went away/],
  ['ends without a result', `${head}${chunk('{}\n')}0\r\n\r\n`, true, /^The process that owns .* \(PID 77\) went away/],
])('an owner that answers to a call, and %s', async (_what, answer, ends, message) => {
  await impostor(socket =>
    socket.once('data', data => {
      const isCall = data.toString().startsWith('POST');
      if (!isCall || ends) socket.end(isCall ? answer : hello());
      else socket.write(answer);
    }),
  );
  const control = await connectControl<{ run: () => Promise<void> }>(folder, { version: '1', patience: quick });
  expect(await exitOf(control!.call('run', undefined as never))).toMatchObject({
    kind: TryLaterError,
    message: expect.stringMatching(message),
  });
});
