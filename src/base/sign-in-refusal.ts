import { printable } from './printable.ts';

const MOST_SAID = 200;

/**
 * Who refused, where the answer to a sign-in (RFC 6749, 4.1.2.1) is an error: the person, or the service, with what it says. A service
 * answers `access_denied` too where it lets nobody else in, and describes it then.
 */
export function findSignInRefusal(answer: URLSearchParams): { by: 'person' } | { by: 'service'; said: string } | undefined {
  const [error, description] = [answer.get('error'), answer.get('error_description')];
  if (error === null) return undefined;
  if (error === 'access_denied' && !description) return { by: 'person' };
  return { by: 'service', said: printable([error, description].filter(Boolean).join(': ').slice(0, MOST_SAID)) };
}
