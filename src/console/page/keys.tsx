import { useEffect, useRef, useState } from 'preact/hooks';
import { go } from './location.ts';
import { areLetterKeysOn, setLetterKeys } from './parts/letter-keys.ts';
import { nextTheme, setTheme } from './parts/theme.ts';
import './keys.css';

const KEYS = [
  ['/', 'find people'],
  ['g then o', 'Overview'],
  ['g then p', 'the person who was shown last'],
  ['g then c', 'Coverage'],
  ['g then s', 'SQL'],
  ['g then x', 'Operations'],
  ['t', 'light, dark, or as the system is'],
  ['?', 'this list'],
  ['← →', 'the day before, the day after; with Shift a week'],
  ['Home', 'the newest night'],
  ['[ ]', 'a shorter, a longer range of the trends'],
  ['Tab, then ← →', 'into a chart; its cursor says what is at each place'],
] as const;

const SCREENS: Readonly<Record<string, string>> = { o: '/', c: '/coverage', s: '/sql', x: '/operations' };
/** How long `g` waits for the letter of a screen. */
const PATIENCE_MS = 1500;

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.shadowRoot !== null || target.isContentEditable || target.matches('input, select, textarea'));

/** Finds people and lists the keys that work on every screen; `lastPerson` is where `g p` goes. */
export function Keys({ lastPerson, hasOperations }: { lastPerson: string | undefined; hasOperations: boolean }) {
  const list = useRef<HTMLDialogElement>(null);
  const [isOn, setOn] = useState(areLetterKeysOn);
  const open = () => list.current?.showModal();
  // The screen may change between `g` and its letter, and what listens with it.
  const waitsUntil = useRef(0);
  useEffect(() => {
    const goTo = (key: string) => {
      const to = key === 'p' ? (lastPerson ?? '/') : SCREENS[key];
      if (to !== undefined && (hasOperations || to !== '/operations')) go(to);
      return to !== undefined;
    };
    const act = (key: string, at: number): boolean => {
      if (at < waitsUntil.current) {
        waitsUntil.current = 0;
        return goTo(key);
      }
      if (key === 'g') waitsUntil.current = at + PATIENCE_MS;
      else if (key === '/') findPeople();
      else if (key === 't') setTheme(nextTheme());
      else if (key === '?') open();
      else return false;
      return true;
    };
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.altKey || event.ctrlKey || event.metaKey || isTyping(event.target) || list.current?.open || !areLetterKeysOn()) return;
      if (act(event.key, event.timeStamp)) event.preventDefault();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, [lastPerson, hasOperations]);
  return (
    <>
      <button type="button" class="of-keys" onClick={findPeople}>
        Find <kbd>/</kbd>
      </button>
      <button type="button" class="of-keys" onClick={open}>
        Keys <kbd>?</kbd>
      </button>
      <dialog ref={list} aria-labelledby="keys" class="keys">
        <h2 id="keys">Keys</h2>
        <dl>
          {KEYS.map(([key, does]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{does}</dd>
            </div>
          ))}
        </dl>
        <label>
          <input
            type="checkbox"
            checked={isOn}
            onChange={({ currentTarget: { checked } }) => {
              setLetterKeys(checked);
              setOn(checked);
            }}
          />{' '}
          Letters and signs do something in this browser; arrows, Home and Tab always do
        </label>
        <form method="dialog">
          <button type="submit">Close</button>
        </form>
      </dialog>
    </>
  );
}

/** Goes to the overview, and into its search once it is there. */
function findPeople(): void {
  const focus = () => {
    const field = document.getElementById('find');
    field?.focus();
    return field !== null;
  };
  if (focus()) return;
  go('/');
  const watch = new MutationObserver(() => focus() && watch.disconnect());
  watch.observe(document.body, { childList: true, subtree: true });
  setTimeout(() => watch.disconnect(), 5000);
}
