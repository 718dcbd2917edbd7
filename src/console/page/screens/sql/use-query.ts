import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, Refused, send } from '../../api.ts';
import { addLine, type Result, readLines } from './result.ts';

/** A query that was asked, and what has come of it. */
export interface Asked {
  sql: string;
  isRunning: boolean;
  /** Undefined until its columns are known. */
  result: Result | undefined;
  error: Refused | undefined;
}

/** How often what has come is shown while more comes. */
const SHOWN_MS = 100;

/** Asks one query at a time; a result that has begun is shown while it comes. */
export function useQuery() {
  const [asked, setAsked] = useState<Asked>();
  const running = useRef<{ id: string; gone: AbortController } | undefined>(undefined);
  useEffect(() => () => running.current?.gone.abort(), []);

  const cancel = () => {
    const { current } = running;
    if (!current) return;
    // Where the server cannot be told, it sees that nobody listens.
    ask('DELETE sql/:id', { id: current.id }).catch(() => current.gone.abort());
  };

  const run = async (sql: string) => {
    if (running.current) return;
    const own = { id: crypto.randomUUID(), gone: new AbortController() };
    running.current = own;
    const result: Result = { columns: [], values: [], rows: 0 };
    const show = (now: Partial<Asked>) => setAsked({ sql, isRunning: true, result: undefined, error: undefined, ...now });
    let error: Refused | undefined;
    let hasBegun = false;
    let shownAt = 0;
    show({});
    try {
      for await (const line of readLines(await send('POST sql', { id: own.id, sql }, own.gone.signal))) {
        if ('error' in line) error = new Refused(line.error);
        addLine(result, line);
        hasBegun = true;
        if (performance.now() - shownAt < SHOWN_MS) continue;
        shownAt = performance.now();
        show({ result: { ...result } });
      }
      if (!error && !result.end) throw new Error('cut off');
    } catch (thrown) {
      error = thrown instanceof Refused ? thrown : new Refused(own.gone.signal.aborted ? CANCELLED : LOST);
    }
    running.current = undefined;
    show({ isRunning: false, result: hasBegun && result.columns.length + (result.end ? 1 : 0) > 0 ? { ...result } : undefined, error });
  };
  return { asked, run, cancel };
}

const CANCELLED = { kind: 'cancelled', message: 'The query was cancelled.', help: '' };
const LOST = { kind: 'lost', message: 'The connection was lost before the result ended.', help: 'Run it again.' };
