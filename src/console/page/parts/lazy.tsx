import type { FunctionComponent } from 'preact';
import { useEffect, useState } from 'preact/hooks';

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
    if (loaded === undefined) return <div class="skeleton" role="status" aria-label="Loading" />;
    if (loaded !== 'failed') return <loaded.Screen {...props} />;
    return (
      <div class="notice" role="alert">
        <strong>This screen could not be loaded.</strong> Is ringneck up running?{' '}
        <button type="button" onClick={() => setCount(count + 1)}>
          Try again
        </button>
      </div>
    );
  };
}
