import { seed } from '../support/whole.ts';

export { seed };
export const rounds = Number(process.env.RINGNECK_CAMPAIGN_ROUNDS ?? 40);
/** For the titles of those whose service counts no requests. */
export const chosen = `no rate limits, seed ${seed}`;
