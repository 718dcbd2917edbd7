import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

interface PlotProps {
  /** What it is, for who does not see it. */
  label: string;
  /** How many places the cursor has; 0: none. */
  count: number;
  /** What is at a place, in words. */
  say(place: number): string;
  /** The place that is nearest to a distance from the left. */
  placeAt?(x: number, width: number): number;
  /** Draws it at a width; the cursor is null until it is moved. */
  children(size: { width: number; cursor: number | null }): ComponentChildren;
}

/** On paper, where nothing is measured. */
const WIDTH = 720;
const isPaper = typeof document === 'undefined';

/** A chart as wide as its room, with a cursor that arrows and the pointer move, and whose place is told. */
export function Plot({ label, count, say, placeAt, children }: PlotProps) {
  const [width, room] = useWidth();
  const [cursor, setCursor] = useState<number | null>(null);
  const place = cursor === null || cursor >= count ? null : cursor;
  const onKeyDown = (event: KeyboardEvent) => {
    const next = count ? movedBy(event, place, count) : undefined;
    if (next === undefined) return;
    event.preventDefault();
    // The same keys step through days where no chart has the focus.
    event.stopPropagation();
    setCursor(next);
  };
  const follow = (event: PointerEvent) => {
    const box = room.current?.getBoundingClientRect();
    if (!placeAt || !box || !count) return;
    setCursor(Math.min(count - 1, Math.max(0, placeAt(event.clientX - box.left, box.width))));
  };
  const reach = count ? { tabIndex: 0, onKeyDown, onPointerMove: follow, onPointerLeave: () => setCursor(null) } : {};
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset belongs to forms */}
      <div class="plot" ref={room} role="group" aria-label={count ? `${label}. Arrow keys move a cursor.` : label} {...reach}>
        {width !== null && children({ width, cursor: place })}
      </div>
      <p class="told" role="status">
        {place === null ? '' : say(place)}
      </p>
    </>
  );
}

function movedBy({ key, shiftKey }: KeyboardEvent, place: number | null, count: number): number | null | undefined {
  const step = shiftKey ? 12 : 1;
  const within = (to: number) => Math.min(count - 1, Math.max(0, to));
  if (key === 'ArrowRight') return place === null ? 0 : within(place + step);
  if (key === 'ArrowLeft') return place === null ? count - 1 : within(place - step);
  if (key === 'Home') return 0;
  if (key === 'End') return count - 1;
  return key === 'Escape' ? null : undefined;
}

/** The width of the room that a chart has, as it changes; null before it is known, so that nothing is drawn twice. */
function useWidth() {
  const room = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(isPaper ? WIDTH : null);
  useLayoutEffect(() => {
    const element = room.current;
    if (!element) return;
    const measure = () => setWidth(Math.max(200, Math.floor(element.clientWidth)));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [width, room] as const;
}
