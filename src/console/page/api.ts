import type { ErrorAnswer } from '../api/route.ts';
import type { AnswerOf, InputOf, RouteName } from '../api/routes.ts';

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

/** Asks the server. @throws Refused */
export async function ask<Name extends RouteName>(name: Name, input: InputOf<Name>, signal?: AbortSignal): Promise<AnswerOf<Name>> {
  const response = await send(name, input, signal);
  const answer: unknown = await response.json().catch(() => undefined);
  if (answer === undefined) throw new Refused(errorOf(answer));
  if (name === 'GET session') csrf = (answer as AnswerOf<'GET session'>).csrf;
  return answer as AnswerOf<Name>;
}

/** Asks what is answered bit by bit; the answer has begun. @throws Refused */
export async function send<Name extends RouteName>(name: Name, input: InputOf<Name>, signal?: AbortSignal): Promise<Response> {
  const [method = 'GET', pattern = ''] = name.split(' ');
  const rest = new Map(Object.entries(input).filter(([, value]) => value !== undefined));
  const path = pattern.replace(/:(\w+)/g, (_, key: string) => {
    const value = encodeURIComponent(String(rest.get(key)));
    rest.delete(key);
    return value;
  });
  const hasBody = method === 'POST';
  const query =
    hasBody || !rest.size ? '' : `?${new URLSearchParams([...rest].map(([key, value]): [string, string] => [key, String(value)]))}`;
  const response = await fetch(`${PREFIX}/api/${path}${query}`, {
    method,
    headers: { 'x-csrf': csrf, ...(hasBody ? { 'content-type': 'application/json' } : {}) },
    ...(hasBody ? { body: JSON.stringify(Object.fromEntries(rest)) } : {}),
    ...(signal ? { signal } : {}),
  }).catch(error => {
    if (signal?.aborted) throw error;
    throw new Refused({ kind: 'lost', message: 'The console does not answer.', help: 'Is ringneck up running?' });
  });
  if (!response.ok) throw new Refused(errorOf(await response.json().catch(() => undefined)));
  return response;
}

function errorOf(answer: unknown): ErrorAnswer['error'] {
  const unclear = {
    kind: 'failed',
    message: 'The answer cannot be read.',
    help: 'Something between this page and the console changes what it says.',
  };
  return typeof answer === 'object' && answer !== null && 'error' in answer ? (answer as ErrorAnswer).error : unclear;
}
