import type { FunctionComponent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { onLive } from '../live.ts';

type Loaded<Props> = { Screen: FunctionComponent<Props> } | 'failed' | undefined;

/** A screen whose code is loaded when it is shown first. @param load to be the same function each time */
export function lazy<Props extends object>(load: () => Promise<FunctionComponent<Props>>): FunctionComponent<Props> {
  return props => {
    const [loaded, setLoaded] = useState<Loaded<Props>>();
    const [count, setCount] = useState(0);
    useEffect(() => {
      let isShown = true;
      const set = (value: Loaded<Props>) => isShown && setLoaded(() => value);
      load().then(
        Screen => set({ Screen }),
        () => set('failed'),
      );
      return () => {
        isShown = false;
      };
    }, [count]);
    const loadAgain = () => setCount(before => before + 1);
    // It is told when the link is back, too.
    useEffect(() => (loaded === 'failed' ? onLive(kind => kind === 'snapshot' && loadAgain()) : undefined), [loaded]);
    // A server that answers, and has no such code, is of another version than the page.
    const tryAgain = () => ask('GET session', {}).then(() => location.reload(), loadAgain);
    if (loaded === undefined) return <div class="skeleton" role="status" aria-label="Loading" />;
    if (loaded !== 'failed') return <loaded.Screen {...props} />;
    return (
      <div class="notice" role="alert">
        <strong>This screen could not be loaded.</strong> Is ringneck up running?{' '}
        <button type="button" onClick={() => void tryAgain()}>
          Try again
        </button>
      </div>
    );
  };
}
