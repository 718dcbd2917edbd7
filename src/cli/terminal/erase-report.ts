import type { EraseReport } from '../../app/erase/report.ts';

type Reported = Pick<EraseReport, 'user_id' | 'found' | 'unsearched' | 'same_person' | 'sign_in_left' | 'dated_snapshots' | 'exports'>;

/** What is left to be done by hand, or to be known, after an account was erased: nothing where there is nothing. */
export function linesOf({ user_id: name, found, unsearched, same_person, sign_in_left, dated_snapshots, exports }: Reported): string[] {
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
    ...(sign_in_left ? [LEFT] : []),
    ...(same_person.length ? [`the same person is kept as ${same_person.join(', ')}`] : []),
  ];
}

const LEFT =
  'the service did not take the access back, and may still list it: its tokens are forgotten here, and the person can end it there, among the apps that they have allowed';
