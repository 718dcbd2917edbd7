import type { RunRequest } from '../../ledger/runs.ts';

/** A run as it is named to people. */
export type RunName = Pick<RunRequest, 'kind' | 'from' | 'to'>;

export const nameRun = ({ kind, from, to }: RunName): string => `the ${kind} of ${from} to ${to}`;
