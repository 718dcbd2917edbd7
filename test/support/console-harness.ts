import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { inject, onTestFinished } from 'vitest';
import type { AppCommands } from '../../src/app/commands.ts';
import { readSettings, type Settings } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import { errorAnswer } from '../../src/console/api/route.ts';
import { routes } from '../../src/console/api/routes.ts';
import { type Console, openConsole } from '../../src/console/server/console.ts';
import type { Grant } from '../../src/console/server/sessions.ts';

interface Options {
  /** Those of an owner; without them there is nothing but the snapshot. */
  commands?: AppCommands;
  settings?: Partial<Settings>;
  now?: () => number;
}

export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it is written out there
  body: any;
}

export interface ConsoleHarness extends Console {
  /** Asks without a session, with headers of one's own. */
  send(method: string, path: string, options?: { headers?: Record<string, string>; body?: unknown }): Promise<Answer>;
  /** Somebody who has come in by a link. */
  enter(grant?: Partial<Grant>): Promise<Visitor>;
}

export interface Visitor {
  cookie: string;
  csrf: string;
  /** Asks as the page does: `ask('GET people', '?q=ada')`. */
  ask(name: string, query?: string, body?: unknown): Promise<Answer>;
}

/** The server checks what it answers whole; here what it streams in lines, and that a refusal has the form that the page reads. */
function ensureDeclared(method: string, path: string, { status, headers }: Response, text: string): void {
  const type = headers.get('content-type') ?? '';
  if (path.startsWith('/api/') && status >= 400) errorAnswer.parse(JSON.parse(text));
  if (!type.startsWith('application/x-ndjson')) return;
  const line = method === 'POST' && path.split('?')[0] === '/api/sql' ? routes['POST sql'].streams?.line : undefined;
  if (!line) throw new Error(`${method} ${path} streams lines that nobody has declared`);
  for (const one of text.trim().split('\n')) line.parse(JSON.parse(one));
}

/** A console over a data folder, served at a free port until the test is over. */
export async function openConsoleHere(folder: string, { commands, settings, now = Date.now }: Options = {}): Promise<ConsoleHarness> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const parts = { settings: { ...readSettings({ RINGNECK_DATA: folder }), ...settings }, commands, log: silentLog, now };
  const served = await openConsole(parts, { host: '127.0.0.1', port: 0, page: join(inject('compiled'), 'console') });
  onTestFinished(() => served.close());
  const send: ConsoleHarness['send'] = async (method, path, { headers = {}, body } = {}) => {
    const json: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
    const response = await fetch(`${served.listening}${path}`, {
      method,
      headers: { origin: served.listening, ...json, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json');
    ensureDeclared(method, path, response, text);
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };
  const enter = async (grant: Partial<Grant> = {}): Promise<Visitor> => {
    const [, code] = served.createLink({ role: 'operator', person: null, ...grant }).split('#');
    const { headers } = await send('POST', '/api/enter', { body: { code } });
    const [cookie = ''] = (headers.get('set-cookie') ?? '').split(';');
    const { body } = await send('GET', '/api/session', { headers: { cookie } });
    return {
      cookie,
      csrf: body.csrf,
      ask: (name, query = '', given = undefined) => {
        const [method = '', path = ''] = name.split(' ');
        return send(method, `/api/${path}${query}`, { headers: { cookie, 'x-csrf': body.csrf }, body: given });
      },
    };
  };
  return { ...served, send, enter };
}
