import { useEffect, useState } from 'preact/hooks';
import type { AnswerOf, InputOf, RouteName } from '../../api/routes.ts';
import { ask, type Refused } from '../api.ts';
import { type LiveKind, onLive } from '../live.ts';

export interface Answered<Answer> {
  /** The last answer, which stays while the next is asked for. */
  answer: Answer | undefined;
  error: Refused | undefined;
  isLoading: boolean;
  /** What was asked for this answer. */
  asked: string;
  again(): void;
}

/** What is asked of the owner changes without a new snapshot. */
const ALSO: Partial<Record<RouteName, readonly LiveKind[]>> = {
  'GET runs': ['run'],
  'GET events': ['event'],
  'GET operations': ['account'],
  'GET session': ['account'],
};

/** Asks, and asks again whenever the question changes, or what answers it. */
export function useAnswer<Name extends RouteName>(name: Name, input: InputOf<Name>): Answered<AnswerOf<Name>> {
  const [state, setState] = useState<Omit<Answered<AnswerOf<Name>>, 'again'>>({
    answer: undefined,
    error: undefined,
    isLoading: true,
    asked: '',
  });
  const [count, setCount] = useState(0);
  const key = JSON.stringify(input);
  useEffect(() => {
    const asking = new AbortController();
    setState(before => ({ ...before, isLoading: true }));
    ask(name, input, asking.signal).then(
      answer => setState({ answer, error: undefined, isLoading: false, asked: key }),
      error => {
        if (!asking.signal.aborted) setState(before => ({ ...before, error: error as Refused, isLoading: false }));
      },
    );
    return () => asking.abort();
  }, [name, key, count]);
  useEffect(
    () =>
      onLive(kind => {
        if (kind === 'snapshot' || ALSO[name]?.includes(kind)) setCount(before => before + 1);
      }),
    [name],
  );
  return { ...state, again: () => setCount(before => before + 1) };
}
