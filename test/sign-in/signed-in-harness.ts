import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createAuthorizeRequest } from '../../src/sign-in/oauth.ts';
import { type Answer, type Asked, type FaultService, startFaultService } from '../support/fault-service.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { type AuthorizationServer, startAuthorizationServer } from './authorization-server.ts';

export interface SignedInHarness {
  server: AuthorizationServer;
  service: FaultService;
  harness: Harness;
  /** What the service answers to a token that is good. */
  answer: { now: (asked: Asked) => Answer | Promise<Answer> };
  /** Whoever is the server's person signs in. */
  login(name: string): ReturnType<Harness['commands']['finishLogin']>;
  /** The same in another data folder. */
  loginAt(at: Harness, name: string): ReturnType<Harness['commands']['finishLogin']>;
}

const EXPIRED = { status: 401, json: { detail: 'Access token has expired.' } };

/** A data folder over a service that takes the tokens of an authorization server that is not ours; they live for two minutes. */
export async function openSignedInHarness(folder: string, name: string): Promise<SignedInHarness> {
  const server = await startAuthorizationServer({ lifeS: 120 });
  const answer: SignedInHarness['answer'] = { now: () => ({ json: { data: [], next_token: null } }) };
  const service = await startFaultService({
    '/v2/usercollection/*': async asked => {
      const person = await server.findPerson(asked.token ?? '');
      if (person === undefined) return EXPIRED;
      if (!asked.path.endsWith('/personal_info')) return answer.now(asked);
      return (server.person?.scopes?.includes('personal') ?? true) ? { json: { id: person } } : { status: 403 };
    },
  });
  onTestFinished(() => service.close());
  const harness = await openHarness(join(folder, name), service.url, { settings: { signIn: server.settings } });
  const loginAt: SignedInHarness['loginAt'] = async ({ commands }, account) => {
    const settings = await commands.beginLogin({ name: account });
    const { url, verifier } = await createAuthorizeRequest(settings);
    const code = new URL(await server.visit(url)).searchParams.get('code') ?? '';
    return commands.finishLogin({ name: account, code, verifier, redirectUrl: settings.redirectUrl });
  };
  return { server, service, harness, answer, login: account => loginAt(harness, account), loginAt };
}
