import type { AnswerOf } from '../../api/routes.ts';
import { numberText } from '../parts/metrics.ts';
import { readsMuch } from '../parts/reads-much.ts';
import { useSession } from '../parts/session.tsx';
import { useAnswer } from '../parts/use-answer.ts';

type Run = AnswerOf<'GET runs'>['runs'][number];

/** What is being read just now, and how far it is. A person is told by their sentence alone: runs are of everybody. */
export function UnderWay() {
  const session = useSession();
  return session && session.role !== 'person' ? <Runs /> : null;
}

function Runs() {
  const { answer } = useAnswer('GET runs', { state: 'running' });
  const runs = answer?.runs.filter(readsMuch) ?? [];
  if (!runs.length) return null;
  return (
    <ul class="under-way" aria-label="Being read now">
      {runs.map(run => (
        <li key={run.id}>
          <progress max={Math.max(1, run.planned)} value={run.done + run.failed} aria-label={`${run.kind}: windows read`} />
          {progressText(run)}
        </li>
      ))}
    </ul>
  );
}

function progressText({ kind, from, to, planned, done, failed, documents, waits_for: waitsFor }: Run): string {
  const range = from !== null && to !== null ? ` of ${from} to ${to}` : '';
  const failures = failed ? `, ${numberText(failed)} failed` : '';
  const waiting = waitsFor === null ? '' : ` It waits for ${waitsFor}.`;
  const counts = `${numberText(done)} of ${numberText(planned)} windows read${failures}, ${numberText(documents)} ${documents === 1 ? 'document' : 'documents'}`;
  return `The ${kind}${range}: ${counts}. What is new is shown within ten minutes.${waiting}`;
}
