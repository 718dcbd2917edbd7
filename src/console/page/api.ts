import type { ErrorAnswer } from '../api/route.ts';
import type { AnswerOf, InputOf, RouteName } from '../api/routes.ts';
import { addressOf, placeOf } from './asked.ts';

/** An answer that is none, in the words of the server. */
export class Refused extends Error {
  readonly kind: string;
  readonly help: string;

  constructor({ kind, message, help }: ErrorAnswer['error']) {
    super(message);
    this.kind = kind;
    this.help = help;
  }
}

/** In front of all paths: '' or `/ring`. */
export const PREFIX = (document.querySelector<HTMLMetaElement>('meta[name=ringneck-prefix]')?.content ?? '/').replace(/\/$/, '');

let csrf = '';

let isOver = false;
let tellOver: () => void = () => undefined;

/** Is told once when an answer says that there is no session any more. */
export function onSessionOver(tell: () => void): void {
  tellOver = tell;
}

let tellLost: () => void = () => undefined;

/** Is told whenever a request finds nobody at the other end. */
export function onLost(tell: () => void): void {
  tellLost = tell;
}

/** Asks the server. @throws Refused */
export async function ask<Name extends RouteName>(name: Name, input: InputOf<Name>, signal?: AbortSignal): Promise<AnswerOf<Name>> {
  const response = await send(name, input, signal);
  const answer: unknown = await response.json().catch(() => undefined);
  if (answer === undefined) throw new Refused(errorOf(answer));
  if (name === 'GET session') {
    csrf = (answer as AnswerOf<'GET session'>).csrf;
    isOver = false;
  }
  return answer as AnswerOf<Name>;
}

/** Asks what is answered bit by bit; the answer has begun. @throws Refused */
export async function send<Name extends RouteName>(name: Name, input: InputOf<Name>, signal?: AbortSignal): Promise<Response> {
  const [method = 'GET'] = name.split(' ');
  const { path, rest } = placeOf(name, input);
  const isPost = method === 'POST';
  // A screen can be used before it is known who looks: what changes something is taken only with what that answer brings.
  if (method !== 'GET' && name !== 'POST enter' && !csrf) await ask('GET session', {}, signal);
  const response = await fetch(`${PREFIX}${isPost ? path : addressOf(name, input)}`, {
    method,
    // What was asked ahead of the page is taken only by a request with the same headers.
    ...(method === 'GET' ? {} : { headers: { 'x-csrf': csrf, ...(isPost ? { 'content-type': 'application/json' } : {}) } }),
    ...(isPost ? { body: JSON.stringify(Object.fromEntries(rest)) } : {}),
    ...(signal ? { signal } : {}),
  }).catch(error => {
    if (signal?.aborted) throw error;
    tellLost();
    throw new Refused({ kind: 'lost', message: 'The console does not answer.', help: 'Is ringneck up running?' });
  });
  if (response.ok) return response;
  const refused = new Refused(errorOf(await response.json().catch(() => undefined)));
  if (refused.kind === 'session' && !isOver) {
    isOver = true;
    tellOver();
  }
  throw refused;
}

function errorOf(answer: unknown): ErrorAnswer['error'] {
  const unclear = {
    kind: 'failed',
    message: 'The answer cannot be read.',
    help: 'Something between this page and the console changes what it says.',
  };
  return typeof answer === 'object' && answer !== null && 'error' in answer ? (answer as ErrorAnswer).error : unclear;
}
