import { useState } from 'preact/hooks';
import type { AnswerOf } from '../../api/routes.ts';
import { Act } from '../parts/act.tsx';
import { useSession } from '../parts/session.tsx';

type Props = NonNullable<AnswerOf<'GET people'>['first_run']>;

/** Nobody is followed yet: a link to make, or what to type. Or nobody can be shown, for the first snapshot is still to be made. */
export function FirstRun({ followed, text, command, can_invite: canInvite }: Props) {
  const session = useSession();
  if (followed > 0) {
    return (
      <>
        <h1>{followed === 1 ? '1 person is followed' : `${followed} people are followed`}</h1>
        <p class="sentence">What is stored of them is shown here as soon as the first snapshot is made.</p>
      </>
    );
  }
  return (
    <>
      <h1>Nobody is followed yet</h1>
      <p class="sentence">Two ways to begin. What is to be typed is typed on the machine where Ringneck runs.</p>
      <div class="first-run">
        <section class="card">
          <h2>Sign in the first person</h2>
          <p>{text}</p>
          {canInvite && session?.can_act ? <Invite /> : <pre>{command}</pre>}
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

function Invite() {
  const [typed, setTyped] = useState('');
  const name = typed.trim();
  return (
    <p class="invite">
      <label>
        Name{' '}
        <input
          type="text"
          maxLength={64}
          autocomplete="off"
          autocapitalize="none"
          value={typed}
          onInput={({ currentTarget: { value } }) => setTyped(value)}
        />
      </label>
      <span class="second">1 to 64 letters, digits, “.”, “_” or “-”</span>
      <Act action={{ name: 'invite', users: [name] }} label="Make a sign-in link" of={name} isOff={!name} />
    </p>
  );
}
