import type { AnswerOf } from '../../api/routes.ts';

/** Nobody is followed yet: what to type. */
export function FirstRun({ text, command }: NonNullable<AnswerOf<'GET people'>['first_run']>) {
  return (
    <>
      <h1>Nobody is followed yet</h1>
      <p class="sentence">Two ways to begin, on the machine where Ringneck runs.</p>
      <div class="first-run">
        <section class="card">
          <h2>Sign in the first person</h2>
          <p>{text}</p>
          <pre>{command}</pre>
          <p class="second">With ringneck up running, the last 30 days are read at once, and this page shows them.</p>
        </section>
        <section class="card">
          <h2>Look at the sandbox</h2>
          <p>Made-up people and a service of your own; nothing leaves this machine:</p>
          <pre>ringneck demo --keep</pre>
        </section>
      </div>
    </>
  );
}
