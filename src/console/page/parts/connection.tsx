import { useEffect, useState } from 'preact/hooks';
import { startLive, watchConnection } from '../live.ts';

/** Follows what happens, and says so when it cannot. */
export function Connection() {
  const [isLost, setLost] = useState(false);
  useEffect(() => {
    startLive();
    return watchConnection(setLost);
  }, []);
  return (
    <span role="status" class="connection">
      {isLost && 'Connection lost, trying again.'}
    </span>
  );
}
