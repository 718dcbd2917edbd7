import type { WebhookClient } from '../webhooks/client.ts';
import { OAuthError } from './oauth-error.ts';
import { findParameter } from './parameters.ts';

/** Admits the client by its form, or by the header Basic (RFC 6749, 2.3.1). Throws OAuthError. */
export function requireClient(client: Pick<WebhookClient, 'isAuthentic'>, authorization: string | undefined, form: URLSearchParams): void {
  const [id, secret] = [findParameter(form, 'client_id'), findParameter(form, 'client_secret')];
  if (authorization !== undefined && secret !== undefined)
    throw new OAuthError('invalid_request', 'client_secret is there twice: in the form and in the header Authorization.');
  const given = authorization === undefined ? { id, secret } : readBasic(authorization);
  if (!client.isAuthentic(given.id, given.secret))
    throw new OAuthError('invalid_client', 'client_id or client_secret is missing or wrong: ringneck service shows both.');
}

interface Credentials {
  id: string | undefined;
  secret: string | undefined;
}

const NONE: Credentials = { id: undefined, secret: undefined };

function readBasic(authorization: string): Credentials {
  const encoded = /^basic +([A-Za-z0-9+/]+=*) *$/i.exec(authorization)?.[1] ?? '';
  const [, id = '', secret = ''] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
  try {
    return { id: decode(id), secret: decode(secret) };
  } catch {
    return NONE;
  }
}

const decode = (text: string) => decodeURIComponent(text.replaceAll('+', ' '));
