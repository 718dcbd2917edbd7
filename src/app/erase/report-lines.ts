import type { Needle } from '../../warehouse/search.ts';
import type { Searched } from './search.ts';

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
  /** What was searched for. */
  searched_for: Needle['what'][];
}

type Reported = Pick<EraseReport, 'user_id' | 'found' | 'unsearched' | 'same_person' | 'dated_snapshots' | 'exports'>;

export const isClean = ({ found, unsearched }: Pick<Reported, 'found' | 'unsearched'>): boolean => !found.length && !unsearched.length;

/** What is left to be done by hand, or to be known, after an account was erased: nothing where there is nothing. */
export function linesOf({ user_id: name, found, unsearched, same_person, dated_snapshots, exports }: Reported): string[] {
  const list = (what: string, paths: readonly string[]) => (paths.length ? [`${what}:`, ...paths.map(path => `  ${path}`)] : []);
  return [
    ...list(
      `still found of ${name}`,
      found.map(({ file, where, what }) => `the ${what} in ${file}${where ? `, ${where}` : ''}`),
    ),
    ...list(
      'not searched',
      unsearched.map(({ file, reason }) => `${file} (${reason})`),
    ),
    ...list(`dated snapshots that hold ${name}, left as they are`, dated_snapshots),
    ...list('exports, not searched and left as they are', exports),
    ...(same_person.length ? [`the same person is kept as ${same_person.join(', ')}`] : []),
  ];
}
