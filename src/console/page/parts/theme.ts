const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];
const KEY = 'ringneck-theme';

const isTheme = (text: string | null): text is Theme => THEMES.some(theme => theme === text);

/** What was chosen in this browser. */
export function chosenTheme(): Theme {
  const kept = localStorage.getItem(KEY);
  return isTheme(kept) ? kept : 'system';
}

export const nextTheme = (): Theme => THEMES[(THEMES.indexOf(chosenTheme()) + 1) % THEMES.length] ?? 'system';

/** Shows it, and keeps it in this browser. */
export function setTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
