import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';

interface MenuProps {
  label: string;
  /** What is in it; `close` when something was chosen. */
  children(close: () => void): ComponentChildren;
}

/** A button that opens a list of things to choose. */
export function Menu({ label, children }: MenuProps) {
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || !isOpen) return;
    event.preventDefault();
    close();
  };
  const onFocusOut = (event: FocusEvent) => {
    const { currentTarget, relatedTarget } = event;
    if (currentTarget instanceof Node && relatedTarget instanceof Node && !currentTarget.contains(relatedTarget)) setOpen(false);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape, wherever the focus is in it
    <div class="sql-menu" onKeyDown={onKeyDown} onFocusOut={onFocusOut}>
      <button type="button" ref={button} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {label}
      </button>
      {isOpen && <div class="sql-menu-list card">{children(close)}</div>}
    </div>
  );
}
