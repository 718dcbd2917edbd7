import type { ComponentChildren } from 'preact';
import { PREFIX } from '../api.ts';
import { go } from '../location.ts';

interface LinkProps {
  /** A path of the page, without the prefix. */
  to: string;
  class?: string;
  current?: boolean;
  children: ComponentChildren;
}

/** Goes to another place of the page without loading it again. */
export function Link({ to, current = false, children, ...rest }: LinkProps) {
  const follow = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a href={`${PREFIX}${to}`} onClick={follow} {...(current ? { 'aria-current': 'page' as const } : {})} {...rest}>
      {children}
    </a>
  );
}
