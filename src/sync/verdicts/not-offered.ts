import { isVerdict, ServiceError } from '../../client/error.ts';
import { ask, firstPages } from '../first-pages.ts';
import type { Pipeline } from '../pipeline.ts';

/** Whether anything of a person is offered at this address. Rejects where no clear answer comes. */
export async function offersAnything(pipeline: Pick<Pipeline, 'client' | 'warehouse' | 'now'>, token: string): Promise<boolean> {
  for (const read of firstPages(pipeline, token).values()) {
    try {
      await ask(read);
      return true;
    } catch (error) {
      if (error instanceof ServiceError && error.kind === 'not_found') continue;
      if (error instanceof ServiceError && isVerdict(error)) return true;
      throw error;
    }
  }
  return false;
}

/** What is asked where nothing of an account is offered. */
export function askForAddress(address: string, userId: string): string {
  const hint = /\/v2$/.test(address) ? ' Ringneck adds /v2 itself' : '';
  return `${address} offers nothing of ${userId}, all of it is 404: is RINGNECK_SERVICE_URL right?${hint}`;
}
