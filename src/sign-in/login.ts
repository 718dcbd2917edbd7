import { createServer, type Server, type ServerResponse } from 'node:http';
import type { SignInSettings } from '../base/config.ts';
import { RingneckError } from '../base/errors.ts';
import { isSameText } from '../base/is-same-text.ts';
import { findSignInRefusal } from '../base/sign-in-refusal.ts';
import { type AuthorizeRequest, createAuthorizeRequest } from './oauth.ts';

export interface LoginOptions {
  settings: Pick<SignInSettings, 'authorizeUrl' | 'redirectUrl' | 'scopes' | 'clientId'>;
  /** The command that begins again. */
  again: string;
  /** Has the person sign in at this address in a browser that sends the answer to us; undefined where none can be opened: the answer may be pasted. */
  open: ((url: string) => Promise<void>) | undefined;
  /** Without `open`: whether a browser may reach the redirect address all the same, as through a forwarded port. */
  listens: boolean;
  /**
   * Shows the address and reads what the person pastes; undefined where nothing can come.
   * @param listensAt where the answer is waited for too
   */
  paste(url: string, options: { listensAt: string | undefined; signal: AbortSignal }): Promise<string | undefined>;
  /** Told once that an answer has come to the redirect address that is not to this sign-in, for which it goes on to wait. */
  onStray?(): void;
  timeoutMs: number;
  signal: AbortSignal;
}

/** What the service is asked for tokens with. */
export interface LoginAnswer {
  code: string;
  verifier: string;
  /** What the person allowed, where the answer says so. */
  scope?: string | undefined;
}

/**
 * Has a person sign in at the service, and gives what came of it; nothing is kept.
 * @throws RingneckError in one line, for a refusal, an answer that is not ours, a port in use, or where nobody answers in time
 */
export async function askToSignIn(options: LoginOptions): Promise<LoginAnswer> {
  const { settings, again, open, timeoutMs, signal } = options;
  const request = await createAuthorizeRequest(settings);
  const late = AbortSignal.timeout(timeoutMs);
  const stop = AbortSignal.any([signal, late]);
  try {
    const answer = open
      ? await waitForBrowser(options, request.state, () => open(request.url), stop)
      : await listenOrPaste(options, request, stop);
    const code = typeof answer === 'string' ? answer : readAnswer(answer, request.state, again);
    if (!code) throw new RingneckError(`there is no code in the answer, and nothing was stored: ${again}`);
    // Whatever else was typed there is nobody's business at the service.
    if (typeof answer === 'string' && /\s/.test(code))
      throw new RingneckError(
        `what was typed is neither the address to which the browser was sent nor the code in it, and nothing was stored: ${again}`,
      );
    const scope = typeof answer === 'string' ? null : answer.get('scope');
    return { code, verifier: request.verifier, ...(scope ? { scope } : {}) };
  } catch (error) {
    if (late.aborted && !signal.aborted) throw new RingneckError(`nobody signed in within ${timeoutMs / 1000} s: ${again}`);
    throw error;
  }
}

async function waitForBrowser(
  options: LoginOptions,
  state: string,
  begin: () => Promise<void>,
  signal: AbortSignal,
): Promise<URLSearchParams> {
  const listener = await openListener(options, state);
  try {
    await raceAbort(begin(), signal);
    return await raceAbort(listener.answered, signal);
  } finally {
    listener.close();
  }
}

/** The answer that a browser brings, or the one that is pasted, whichever comes first. Where nobody can listen it is pasted. */
async function listenOrPaste(
  options: LoginOptions,
  { url, state }: Pick<AuthorizeRequest, 'url' | 'state'>,
  stop: AbortSignal,
): Promise<URLSearchParams | string> {
  const { listens, paste } = options;
  const { redirectUrl } = options.settings;
  const listener = listens ? await openListener(options, state).catch(() => undefined) : undefined;
  const over = new AbortController();
  try {
    const pasted = paste(url, { listensAt: listener && redirectUrl, signal: AbortSignal.any([stop, over.signal]) });
    const read = pasted.then(text => (text === undefined && listener ? listener.answered : readPasted(text ?? '')));
    return await raceAbort(listener ? Promise.race([read, listener.answered]) : read, stop);
  } finally {
    over.abort();
    listener?.close();
  }
}

/** The code of an answer; null where it has none. Throws RingneckError. */
function readAnswer(parameters: URLSearchParams, state: string, again: string): string | null {
  if (!isTo(state, parameters)) {
    throw new RingneckError(`the answer is not to this sign-in (its state is another one), and nothing was stored: ${again}`);
  }
  const refusal = findSignInRefusal(parameters);
  if (refusal?.by === 'person') throw new RingneckError(`the person did not allow it, and nothing was stored: ${again}`);
  if (refusal)
    throw new RingneckError(`the service did not let the person sign in (it says: ${refusal.said}), and nothing was stored: ${again}`);
  return parameters.get('code');
}

const isTo = (state: string, answer: URLSearchParams): boolean => isSameText(answer.get('state') ?? '', state);

/** What a person copies: the address to which the browser was sent, its query, or the code alone, which the verifier ties to us too. */
function readPasted(text: string): URLSearchParams | string {
  const pasted = text.trim();
  if (!/(^|[?&])(code|error|state)=/.test(pasted)) return pasted;
  return new URLSearchParams(pasted.slice(pasted.indexOf('?') + 1).replace(/#.*/s, ''));
}

const STRAY =
  'This is not the answer to the sign-in that Ringneck waits for, and nothing was stored. Open the address that its terminal shows.';

interface Listener {
  /** The first answer to this sign-in. */
  answered: Promise<URLSearchParams>;
  close(): void;
}

/** Listens at the redirect address. Throws RingneckError where nobody can. */
async function openListener({ settings, again, onStray }: LoginOptions, state: string): Promise<Listener> {
  const address = new URL(settings.redirectUrl);
  const server = createServer();
  let hasStrayed = false;
  const answered = new Promise<URLSearchParams>(resolve => {
    server.on('request', (request, response) => {
      // Any page and program of this machine can ask, also for what is no address.
      const [path, query = ''] = (request.url ?? '').split(/\?(.*)/s);
      const parameters = new URLSearchParams(query);
      const isAnswer = request.method === 'GET' && path === address.pathname && parameters.size > 0;
      if (!isAnswer) return say(response, 404, 'There is nothing here.');
      if (!isTo(state, parameters)) {
        if (!hasStrayed) onStray?.();
        hasStrayed = true;
        return say(response, 400, STRAY);
      }
      say(response, 200, 'Ringneck has the answer. Its terminal says whether the sign-in is complete; this window can be closed.');
      response.on('close', () => resolve(parameters));
    });
  });
  await startListening(server, address, again);
  return {
    answered,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function startListening(server: Server, { hostname, port }: URL, again: string): Promise<void> {
  const [host, at] = [hostname.replace(/^\[|\]$/g, ''), Number(port || 80)];
  return new Promise((resolve, reject) => {
    server.once('error', error => {
      const code = 'code' in error ? error.code : undefined;
      const why = code === 'EADDRINUSE' ? 'is in use' : `cannot be listened at (${code ?? error.message})`;
      const or = `free it, register another RINGNECK_REDIRECT_URL, or paste the answer: ${again} --no-browser`;
      reject(new RingneckError(`port ${at} of RINGNECK_REDIRECT_URL ${why}: ${or}`, 1, { cause: error }));
    });
    server.listen(at, host, resolve);
  });
}

function say(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    connection: 'close',
  });
  response.end(`${text}\n`);
}

async function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
    work.catch(() => undefined);
  }
}
