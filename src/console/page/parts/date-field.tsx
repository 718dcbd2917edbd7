import { useState } from 'preact/hooks';

interface DateFieldProps {
  label: string;
  /** `2026-11-22`, or nothing. */
  value: string;
  /** Null: it was emptied. */
  onChoose(day: string | null): void;
}

/** Of a year of which two digits are typed the browser says that it is one of the first. */
const FIRST = '1900';

/** A day that can be typed: while it is, what is shown elsewhere does not change it. */
export function DateField({ label, value, onChoose }: DateFieldProps) {
  const [draft, setDraft] = useState<string | null>(null);
  const choose = ({ currentTarget: { value: now, validity } }: { currentTarget: HTMLInputElement }) => {
    setDraft(now);
    if (now === '' ? !validity.badInput : now >= FIRST) onChoose(now || null);
  };
  return (
    <label>
      {label} <input type="date" value={draft ?? value} onInput={choose} onBlur={() => setDraft(null)} />
    </label>
  );
}
