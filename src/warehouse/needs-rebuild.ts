/** Why a snapshot cannot be brought up to date, and has to be made anew. */
export class NeedsRebuild extends Error {}
