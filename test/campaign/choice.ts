/** Which campaign: another seed each day, named in every failure, unless one is given. */
export const seed = Number(process.env.RINGNECK_CAMPAIGN_SEED ?? Math.floor(Date.now() / 86_400_000));
export const rounds = Number(process.env.RINGNECK_CAMPAIGN_ROUNDS ?? 40);
/** For the titles of those whose service counts no requests. */
export const chosen = `no rate limits, seed ${seed}`;
