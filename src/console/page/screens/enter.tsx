import { useEffect, useState } from 'preact/hooks';
import { ask, type Refused } from '../api.ts';
import { go } from '../location.ts';

/** Exchanges the code of the link, which the browser sends nowhere by itself, for a session. */
export function Enter({ onEntered }: { onEntered(): void }) {
  const [error, setError] = useState<Refused>();
  useEffect(() => {
    const code = location.hash.slice(1);
    // It is worth nothing after this, and is not to be found in the history.
    history.replaceState(null, '', location.pathname);
    ask('POST enter', { code }).then(() => {
      go('/', { replace: true });
      onEntered();
    }, setError);
  }, [onEntered]);
  return error ? <SessionOver message={error.message} /> : <p role="status">Opening the console …</p>;
}

/** Nobody looks: how to come in. */
export function SessionOver({ message }: { message: string }) {
  return (
    <main class="narrow">
      <h1>{message}</h1>
      <p>
        A fresh link, at any time, on the machine where Ringneck runs: <code>ringneck console</code>
      </p>
    </main>
  );
}
