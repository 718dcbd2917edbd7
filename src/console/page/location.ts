import { useLayoutEffect, useState } from 'preact/hooks';
import { PREFIX } from './api.ts';

/** Where the page is: its path without the prefix, and its query, which hold all of its state. */
export interface Place {
  path: string;
  query: URLSearchParams;
}

const listeners = new Set<() => void>();
const here = (): Place => ({
  path: location.pathname.slice(PREFIX.length) || '/',
  query: new URLSearchParams(location.search),
});

addEventListener('popstate', () => {
  for (const tell of listeners) tell();
});

/** @param to a path without the prefix, with its query */
export function go(to: string, { replace = false } = {}): void {
  history[replace ? 'replaceState' : 'pushState'](null, '', `${PREFIX}${to}`);
  for (const tell of listeners) tell();
}

/** The same place with other parameters; those that are null are left out. */
export function setQuery(changes: Readonly<Record<string, string | null>>, options?: { replace?: boolean }): void {
  const { path, query } = here();
  for (const [key, value] of Object.entries(changes)) value === null ? query.delete(key) : query.set(key, value);
  const text = query.toString();
  go(text ? `${path}?${text}` : path, options);
}

export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  // Before the paint, or a move within the first frame would not be heard of.
  useLayoutEffect(() => {
    const tell = () => setPlace(here());
    listeners.add(tell);
    return () => void listeners.delete(tell);
  }, []);
  return place;
}
