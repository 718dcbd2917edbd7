import { useRef, useState } from 'preact/hooks';
import type { AnswerOf, InputOf } from '../../api/routes.ts';
import { ask, type Refused } from '../api.ts';
import './act.css';
import { Button } from './button.tsx';
import { copyText } from './copy-text.ts';
import { useSession } from './session.tsx';

interface ActProps {
  /** What would be done, to whom. */
  action: InputOf<'POST actions/:name/plan'>;
  label: string;
  /** Of several buttons alike, which one: `ada`. */
  of: string;
  /** Something is still missing for it. */
  isOff?: boolean;
  /** It was done; and when the dialog closes, for what changed meanwhile is not shown yet. */
  onDone?(): void;
}

/** Whether somebody reads what is to be done, or what came of it: the row from which that was asked stays meanwhile. */
export const isActing = () => document.querySelector('dialog.act-dialog[open]') !== null;

type Plan = AnswerOf<'POST actions/:name/plan'>;
type Done = AnswerOf<'POST actions/:name'>;

/** Shows what would be done, and does it when that is wanted; nothing at all where it may not be done. */
export function Act({ action, label, of, isOff = false, onDone }: ActProps) {
  const session = useSession();
  const dialog = useRef<HTMLDialogElement>(null);
  const close = useRef<HTMLButtonElement>(null);
  const [plan, setPlan] = useState<Plan>();
  const [done, setDone] = useState<Done>();
  const [error, setError] = useState<Refused>();
  const [isBusy, setBusy] = useState(false);
  if (!session?.can_act) return null;
  const working = async (work: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    await work().catch(setError);
    setBusy(false);
  };
  const open = () => {
    setPlan(undefined);
    setDone(undefined);
    dialog.current?.showModal();
    void working(async () => setPlan(await ask('POST actions/:name/plan', action)));
  };
  const start = () =>
    working(async () => {
      if (!plan?.plan) return;
      setDone(await ask('POST actions/:name', { name: action.name, plan: plan.plan }));
      // The button that was pressed goes, and the focus with it.
      close.current?.focus();
      onDone?.();
    });
  const title = label.replace(/…$/, '');
  return (
    <>
      <Button class="act" isOff={isOff} onPress={open}>
        {label}
        <span class="unseen"> {of}</span>
      </Button>
      <dialog ref={dialog} aria-label={`${title}: ${of}`} class="act-dialog" onClose={() => onDone?.()}>
        <h2>
          {title}: {of}
        </h2>
        <div role="status">
          {!plan && !error && <p>Looking at what would be done …</p>}
          {!done && plan?.says.map(line => <p key={line}>{line}</p>)}
          {error && (
            <p>
              <strong>{error.message}</strong> {error.help}
            </p>
          )}
          {done && <p>{done.says}</p>}
        </div>
        {done?.url && <HandOn url={done.url} />}
        <p class="act-buttons">
          {plan?.plan && !done && (
            <Button class="act-do" isOff={isBusy} onPress={() => void start()}>
              {isBusy ? 'At work …' : title}
            </Button>
          )}
          <button type="button" ref={close} onClick={() => dialog.current?.close()}>
            {done || plan?.plan === null ? 'Close' : 'Cancel'}
          </button>
        </p>
      </dialog>
    </>
  );
}

/** A link that is shown once, to be copied. */
function HandOn({ url }: { url: string }) {
  const [copied, setCopied] = useState('');
  const copy = async () => setCopied((await copyText(url)) ? 'Copied.' : 'This browser does not let a page copy: take the link.');
  return (
    <>
      <p class="act-link">
        <input class="act-url" type="text" readOnly value={url} aria-label="Link" onFocus={event => event.currentTarget.select()} />
        <button type="button" onClick={() => void copy()}>
          Copy
        </button>
      </p>
      <p class="second" role="status">
        {copied}
      </p>
    </>
  );
}
