import type { Needle } from '../../warehouse/readers/search.ts';

export interface Searched {
  /** How many files were searched. */
  files: number;
  found: Found[];
  /** What could not be searched. */
  unsearched: { file: string; reason: string }[];
  /** Dated snapshots that hold the person; they are never altered. */
  dated_snapshots: string[];
  /** Exports in the data folder, which are not searched. */
  exports: string[];
}

export interface Found {
  /** A path, or the address of a Redis. */
  file: string;
  /** The column of a table, a view, a queue; null: among the file's bytes. */
  where: string | null;
  what: Needle['what'];
}

export interface EraseReport extends Searched {
  user_id: string;
  /** How many rows went, by table; runs that were the person's alone are rows of sync.runs. */
  removed: Record<string, number>;
  /** Accepted events of the person that were not worked off. */
  events: number;
  /** The snapshot that was made anew; null where there was none of ours, or where it could not be made and was taken away. */
  snapshot: string | null;
  /** Other accounts of the same person: what they hold stays, and so do the service's ids that are theirs too. */
  same_person: string[];
  /** Whether the service is not known to have taken back what the person had signed in with; nobody tries it again. */
  sign_in_left: boolean;
  /** What was searched for. */
  searched_for: Needle['what'][];
}

export const isClean = ({ found, unsearched }: Pick<EraseReport, 'found' | 'unsearched'>): boolean => !found.length && !unsearched.length;
