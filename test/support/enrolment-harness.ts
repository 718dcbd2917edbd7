import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { openConnect } from '../../src/app/enrolment/connect.ts';
import { findFreePort } from '../../src/app/free-port.ts';
import { readSettings } from '../../src/base/config.ts';
import { createLog } from '../../src/base/log.ts';
import { openReceiver, type Receiver } from '../../src/receiver/receiver.ts';
import { type Harness, openHarness } from './harness.ts';
import { openSandboxHere } from './sandbox-here.ts';
import { fillIn } from './sandbox-page.ts';

export interface EnrolmentHarness {
  harness: Harness;
  receiver: Receiver;
  sandbox: Awaited<ReturnType<typeof openSandboxHere>>;
  publicUrl: string;
  /** What the log has. */
  lines: string[];
  /** What RINGNECK_ON_FAILURE would have been told. */
  told: object[];
  /** The study's text, which may be written again. */
  textFile: string;
  invite(name: string, days?: number): Promise<string>;
  /** Has a new browser sign in by a link as a person of the sandbox, and gives the page at the end. */
  enrol(link: string, person: string, unticked?: readonly string[]): Promise<Shown>;
}

interface Options {
  /** Of `sharePlace`, in place of one of its own. */
  place?: () => Place;
  people?: number;
  /** What a proxy takes away from the public address. */
  prefix?: string;
  now?: () => number;
  faults?: Parameters<typeof openSandboxHere>[2];
  sandbox?: Parameters<typeof openSandboxHere>[1];
  text?: string;
  /** That the sandbox knows too. */
  redirectUrl?: string;
}

/** A sandbox that sends people back to a port of its own. */
interface Place {
  sandbox: Awaited<ReturnType<typeof openSandboxHere>>;
  port: number;
}

async function openPlace(folder: string, { people = 2, faults, redirectUrl, sandbox }: Options): Promise<Place> {
  const port = await findFreePort();
  const known = [`http://127.0.0.1:${port}/connect/callback`, ...(redirectUrl ? [redirectUrl] : [])];
  return { port, sandbox: await openSandboxHere(folder, { people, redirectUrl: known, ...sandbox }, faults) };
}

/** One for all tests of a file that want no other, one after the other. */
export function sharePlace(folder: string): { place: () => Place } {
  let shared: Place | undefined;
  beforeAll(async () => {
    shared = await openPlace(join(folder, 'service'), {});
  });
  afterAll(() => shared?.sandbox.close());
  return {
    place: () => {
      if (!shared) throw new Error('it is not open yet');
      return shared;
    },
  };
}

/** The sandbox, and the owner of a data folder that listens as `up` does, all in this process. */
export async function openEnrolment(folder: string, name: string, options: Options = {}): Promise<EnrolmentHarness> {
  const { prefix = '', now, text = 'We study sleep.\n', place } = options;
  const { sandbox, port } = place?.() ?? (await openPlace(join(folder, `${name}-service`), options));
  if (!place) onTestFinished(() => sandbox.close());
  const publicUrl = `http://127.0.0.1:${port}${prefix}`;
  const textFile = join(folder, `${name}.txt`);
  writeFileSync(textFile, text);
  const { enrolment, signIn } = readSettings({
    RINGNECK_SERVICE_URL: sandbox.url,
    RINGNECK_CLIENT_ID: sandbox.client.id,
    RINGNECK_CLIENT_SECRET: sandbox.client.secret,
    RINGNECK_PUBLIC_URL: publicUrl,
    RINGNECK_STUDY_NAME: 'The Night <Study>',
    RINGNECK_STUDY_CONTACT: 'Dr. Zoe Example & team, night@example.org',
    RINGNECK_STUDY_TEXT: textFile,
  });
  const lines: string[] = [];
  const log = createLog({ level: 'trace', pretty: false, stream: { write: line => void lines.push(line) } });
  const harness = await openHarness(join(folder, name), sandbox.url, { settings: { enrolment, signIn }, log, ...(now ? { now } : {}) });
  const { app } = harness;
  const told: object[] = [];
  Object.defineProperty(app, 'onFailure', {
    value: Object.assign((failure: object) => void told.push(failure), { rename: () => {}, forget: () => {}, close: async () => {} }),
  });
  const connect = openConnect(app, () => app);
  if (!connect) throw new Error('nobody can be invited');
  const receiver = await openReceiver({ ready: async () => {}, connect }, { host: '127.0.0.1', port });
  onTestFinished(() => receiver.close());
  const invite: EnrolmentHarness['invite'] = async (user, days = 7) => (await harness.commands.inviteAccount({ name: user, days })).url;
  const enrol: EnrolmentHarness['enrol'] = async (link, person, unticked = []) => {
    const browser = new Browser();
    const sent = await browser.submit(await browser.open(link));
    return browser.open(await fillIn(sent.location ?? '', person, unticked));
  };
  return { harness, receiver, sandbox, publicUrl, lines, told, textFile, invite, enrol };
}

/** What a browser shows. */
export interface Shown {
  url: string;
  status: number;
  headers: Headers;
  html: string;
  /** The first heading. */
  title: string;
  /** Where it is sent to. */
  location: string | undefined;
}

/** A browser without JavaScript: it keeps cookies for their paths, and sends forms. */
export class Browser {
  readonly cookies = new Map<string, { value: string; path: string }>();
  readonly #headers: Record<string, string>;

  constructor(headers: Record<string, string> = {}) {
    this.#headers = headers;
  }

  open(url: string, init: RequestInit = {}): Promise<Shown> {
    return this.#send(url, init);
  }

  /** Presses the only button of a page. */
  submit({ url, html }: Shown, init: { headers?: Record<string, string> } = {}): Promise<Shown> {
    const form = new URLSearchParams();
    for (const [, name = '', value = ''] of html.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g))
      form.append(name, value);
    const action = new URL(/<form method="post" action="([^"]+)">/.exec(html)?.[1] ?? 'no-form', url);
    return this.#send(action.href, { method: 'POST', body: form, headers: { 'sec-fetch-site': 'same-origin', ...init.headers } });
  }

  async #send(url: string, init: RequestInit): Promise<Shown> {
    const { pathname } = new URL(url);
    const sent = [...this.cookies].filter(([, { path }]) => pathname === path || pathname.startsWith(`${path}/`));
    const cookie = sent.map(([name, { value }]) => `${name}=${value}`).join('; ');
    const headers = { ...this.#headers, ...(cookie ? { cookie } : {}), ...Object.fromEntries(new Headers(init.headers)) };
    const response = await fetch(url, { ...init, headers, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value, path] = /^([^=]+)=([^;]*);.*Path=([^;]+)/.exec(line) ?? [];
      if (name && value !== undefined && path) this.cookies.set(name, { value, path });
    }
    const html = await response.text();
    const title = unescapeHtml(/<h1>(.*)<\/h1>/.exec(html)?.[1] ?? '');
    return {
      url,
      status: response.status,
      headers: response.headers,
      html,
      title,
      location: response.headers.get('location') ?? undefined,
    };
  }
}

const unescapeHtml = (html: string) =>
  html.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&');

/** The link to withdraw on a page. */
export const withdrawLinkOf = ({ html }: Shown): string => /<a href="([^"]+\/connect\/withdraw\/[^"]+)"/.exec(html)?.[1] ?? 'no link';
