import type { WebhookClient } from '../webhooks/client.ts';
import type { Grants } from './grants.ts';

/** Signing in as the service has it: for which client, as which people, and what they have granted. */
export interface SignIn {
  client: Pick<WebhookClient, 'id' | 'isAuthentic'>;
  people: readonly { name: string; user_id: string }[];
  /** Where the client may have people sent back to. */
  redirectUrls: readonly string[];
  grants: Grants;
}
