import type { ComponentChildren } from 'preact';
import { PassingButton } from './button.tsx';
import type { Answered } from './use-answer.ts';

/** What is shown of an answer: itself, or why it is not there. The last one stays where the next cannot be had. */
export function Shown<Answer>({ of, children }: { of: Answered<Answer>; children: (answer: Answer) => ComponentChildren }) {
  const { answer, error, again } = of;
  return (
    <>
      {error && (
        <div class="notice" role="alert">
          <strong>{error.message}</strong> {error.help}{' '}
          {error.kind !== 'session' && <PassingButton onPress={again}>Try again</PassingButton>}
        </div>
      )}
      {answer === undefined ? !error && <div class="skeleton" role="status" aria-label="Loading" /> : children(answer)}
    </>
  );
}
