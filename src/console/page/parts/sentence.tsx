import type { AnswerOf } from '../../api/routes.ts';

/** The answer of a screen, as the server says it. */
export function Sentence({ of }: { of: AnswerOf<'GET people/:id/night/:day'>['sentence'] }) {
  return <p class="sentence">{of.map(({ text, tone }) => (tone === 'plain' ? text : <span class={tone}>{text}</span>))}</p>;
}
