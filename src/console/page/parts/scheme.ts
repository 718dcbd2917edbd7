import { useEffect, useState } from 'preact/hooks';

/** Changes when the page becomes light or dark: what is drawn on a canvas is to be drawn anew. */
export function useScheme(): string {
  const query = matchMedia('(prefers-color-scheme: dark)');
  const read = () => `${document.documentElement.dataset.theme ?? ''} ${query.matches}`;
  const [scheme, setScheme] = useState(read);
  useEffect(() => {
    const tell = () => setScheme(read());
    const watch = new MutationObserver(tell);
    watch.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    query.addEventListener('change', tell);
    return () => {
      watch.disconnect();
      query.removeEventListener('change', tell);
    };
  }, []);
  return scheme;
}
