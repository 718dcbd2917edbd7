/** A text that breaks between its words alone: dates, at whose hyphens a narrow column would break them. */
export function Whole({ text }: { text: string }) {
  return (
    <>
      {text.split(' ').flatMap((word, at) => [
        at > 0 ? ' ' : '',
        <span key={at} class="whole">
          {word}
        </span>,
      ])}
    </>
  );
}
