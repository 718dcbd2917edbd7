import { useState } from 'preact/hooks';
import { ask, type Refused } from '../api.ts';
import { clearHistory } from '../screens/sql/history.ts';

/** Ends the session, and says so where it could not. Who comes next reads no queries of others. */
export function SignOut() {
  const [refused, setRefused] = useState<Refused>();
  const signOut = async () => {
    clearHistory();
    setRefused(undefined);
    await ask('DELETE session', {}).catch((error: Refused) => {
      if (error.kind !== 'session') setRefused(error);
    });
    // This question tells all pages of this browser that the session is over.
    ask('GET session', {}).catch(() => undefined);
  };
  return (
    <>
      <button type="button" class="of-keys" onClick={() => void signOut()}>
        Sign out
      </button>
      {refused && (
        <p class="notice" role="alert">
          <strong>You are still signed in.</strong> {refused.message} {refused.help}
        </p>
      )}
    </>
  );
}
