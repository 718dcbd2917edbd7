import { useLayoutEffect, useRef } from 'preact/hooks';

const REACHED = 'button:not(:disabled), a[href]';

/**
 * Where the keyboard goes on when a row goes with the button that has the focus: in the row that stands there then, or the nearest one,
 * else in the room itself.
 */
export function useRowFocus<Room extends HTMLElement>() {
  const ref = useRef<Room>(null);
  const had = useRef<{ element: Element; row: number } | undefined>(undefined);
  const onFocusIn = ({ target }: FocusEvent) => {
    const row = target instanceof Element ? target.closest<HTMLTableRowElement>('tbody tr') : null;
    had.current = row && target instanceof Element ? { element: target, row: row.sectionRowIndex } : undefined;
  };
  useLayoutEffect(() => {
    const { current } = had;
    if (!current || current.element.isConnected) return;
    had.current = undefined;
    if (document.activeElement !== null && document.activeElement !== document.body) return;
    const room = ref.current ?? document.getElementById('main');
    const rows = [...(ref.current?.querySelectorAll<HTMLElement>('tbody tr') ?? [])];
    const nearest = [...rows.slice(current.row), ...rows.slice(0, current.row).reverse()];
    const next = nearest.map(row => row.querySelector<HTMLElement>(REACHED)).find(element => element !== null);
    (next ?? room)?.focus({ preventScroll: next === undefined });
  });
  return { ref, onFocusIn, tabIndex: -1 };
}
