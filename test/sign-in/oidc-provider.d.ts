/** What the tests use of a package that has no types of its own. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  interface Grant {
    addOIDCScope(scope: string): void;
    rejectOIDCScope(scope: string): void;
    save(): Promise<string>;
  }

  interface Token {
    accountId: string;
    scope?: string;
    grantId: string;
    isValid: boolean;
  }

  export default class Provider {
    constructor(issuer: string, configuration: object);
    readonly Grant: new (of: {
      accountId: string;
      clientId: string;
    }) => Grant;
    readonly AccessToken: { find(token: string): Promise<Token | undefined>; revokeByGrantId(id: string): Promise<void> };
    readonly RefreshToken: { revokeByGrantId(id: string): Promise<void> };
    callback(): (request: IncomingMessage, response: ServerResponse) => void;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<{ params: Record<string, string> }>;
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object, options: object): Promise<void>;
    on(event: string, listener: (...given: unknown[]) => void): void;
  }
}
