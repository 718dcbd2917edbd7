import { useEffect, useState } from 'preact/hooks';
import type { AnswerOf } from '../../api/routes.ts';
import { startLive, watchConnection } from '../live.ts';
import { momentText } from './format.ts';

type Session = AnswerOf<'GET session'>;

const WORDS: Readonly<Record<Session['freshness'], string>> = {
  followed: '',
  reading: '',
  alone: 'ringneck up does not run.',
  full: 'The disk is full: nothing is stored.',
  unreachable: 'The service cannot be reached.',
  unpublished: 'No newer snapshot can be made.',
};

/** Follows what happens; says of when the data are, and what keeps them from being up to date. */
export function Fresh({ session: { taken_at: takenAt, freshness } }: { session: Session }) {
  const [isLost, setLost] = useState(false);
  useEffect(() => {
    startLive();
    return watchConnection(setLost);
  }, []);
  const problem = isLost ? 'Connection lost, trying again.' : WORDS[freshness];
  const data = takenAt === null ? 'No snapshot yet' : `data of ${momentText(takenAt, Date.now() / 1000)}`;
  const upToDate = freshness === 'reading' ? 'More is being read' : 'Up to date';
  const told = takenAt !== null && !problem ? `${upToDate}, ${data}` : data.replace('data', 'Data');
  return (
    <span class={problem ? 'fresh stale' : 'fresh'}>
      {told}
      {problem && '. '}
      <span role="status">{problem}</span>
    </span>
  );
}
