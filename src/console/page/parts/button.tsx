import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

interface ButtonProps {
  /** There is nothing to be pressed for now. */
  isOff: boolean;
  onPress(): void;
  children: ComponentChildren;
  class?: string;
  'aria-label'?: string;
}

/** A button that cannot always be pressed. Were it disabled, the focus would go with the last press. */
export function Button({ isOff, onPress, children, ...rest }: ButtonProps) {
  const press = () => {
    if (!isOff) onPress();
  };
  return (
    <button type="button" {...rest} aria-disabled={isOff || undefined} onClick={press}>
      {children}
    </button>
  );
}

/** A button that goes once its press has done its work: the keyboard goes on at what is shown then. */
export function PassingButton({ onPress, children }: Pick<ButtonProps, 'onPress' | 'children'>) {
  const ref = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    const button = ref.current;
    return () => {
      if (document.activeElement === button) document.getElementById('main')?.focus({ preventScroll: true });
    };
  }, []);
  return (
    <button type="button" ref={ref} onClick={onPress}>
      {children}
    </button>
  );
}
