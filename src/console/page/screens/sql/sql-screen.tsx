import { useEffect, useRef, useState } from 'preact/hooks';
import type { Catalogue } from '../../../api/sql.ts';
import { PREFIX, type Refused, send } from '../../api.ts';
import { go, usePlace } from '../../location.ts';
import { Button, PassingButton } from '../../parts/button.tsx';
import { copyText } from '../../parts/copy-text.ts';
import { save } from '../../parts/save.ts';
import { useAnswer } from '../../parts/use-answer.ts';
import { CataloguePanel } from './catalogue-panel.tsx';
import { ChartCard } from './chart-card.tsx';
import { Editor } from './editor.tsx';
import { addToHistory, clearHistory, draftAt, noteDraft, readHistory } from './history.ts';
import { Menu } from './menu.tsx';
import { CHARTS, type Chart } from './propose.ts';
import { cutText } from './result.ts';
import { headOf, ResultTable } from './result-table.tsx';
import './sql.css';
import { type Asked, useQuery } from './use-query.ts';

/** What the address holds behind its #: the query, and the chart where one was chosen. */
function readHash(): { sql: string; chart: Chart | undefined } {
  const hash = new URLSearchParams(location.hash.slice(1));
  const kind = CHARTS.find(one => one === hash.get('chart'));
  const place = (key: string) => (/^\d{1,5}$/.test(hash.get(key) ?? '') ? Number(hash.get(key)) : null);
  const y = place('y');
  return { sql: hash.get('q') ?? '', chart: kind && y !== null ? { kind, x: place('x'), y, by: place('by') } : undefined };
}

function pathOf(sql: string, chart?: Chart | null): string {
  const hash = new URLSearchParams({ q: sql });
  if (chart)
    for (const [key, value] of [['chart', chart.kind], ...Object.entries(chart).slice(1)])
      if (value !== null) hash.set(`${key}`, `${value}`);
  return `/sql#${hash}`;
}

/** Asks what one likes, in SQL. */
export function SqlScreen() {
  usePlace();
  const catalogue = useAnswer('GET catalogue', {});
  const { sql: linked, chart } = readHash();
  const [text, setText] = useState(() => draftAt(linked));
  const [given, setGiven] = useState({ text });
  useEffect(() => noteDraft(linked, text), [linked, text]);
  const give = (sql: string) => {
    setText(sql);
    setGiven({ text: sql });
  };
  const { asked, run, cancel } = useQuery();
  // Back and forward, and a link to another query.
  const before = useRef(linked);
  useEffect(() => {
    if (linked === before.current) return;
    before.current = linked;
    give(linked);
  }, [linked]);
  const runNow = () => {
    if (!text.trim() || asked?.isRunning) return;
    addToHistory(text, Date.now());
    before.current = text;
    if (text !== linked) go(pathOf(text));
    void run(text);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const isRun = event.key === 'Enter' && (event.ctrlKey || event.metaKey);
    if (!isRun && !(event.key === 'Escape' && asked?.isRunning)) return;
    event.preventDefault();
    event.stopPropagation();
    if (isRun) runNow();
    else cancel();
  };
  const entries = catalogue.answer?.entries ?? [];
  return (
    <div class="sql" onKeyDownCapture={onKeyDown}>
      <header class="sql-head">
        <h1>SQL</h1>
        {catalogue.answer && <Limits {...catalogue.answer.limits} />}
        <Tools answer={catalogue.answer} onChoose={give} text={text} isRunning={asked?.isRunning ?? false} run={runNow} cancel={cancel} />
      </header>
      {catalogue.error && <Notice error={catalogue.error} again={catalogue.again} />}
      <div class="sql-columns">
        <div class="sql-work">
          <div class="card sql-card">
            <Editor given={given} onText={setText} entries={entries} />
          </div>
          {!asked && catalogue.answer && (
            <section class="card sql-recipes" aria-label="Examples">
              <Recipes title="Questions to begin with: press one, then run it" recipes={catalogue.answer.questions} onChoose={give} />
              <Recipes title={COOKBOOK} recipes={catalogue.answer.cookbook} onChoose={give} />
            </section>
          )}
          {asked && <Outcome asked={asked} bytes={catalogue.answer?.limits.bytes ?? 0} />}
          {asked?.result?.end && (
            <ChartCard
              result={asked.result}
              sql={asked.sql}
              chosen={asked.sql === linked ? chart : undefined}
              onChoose={chosen => go(pathOf(asked.sql, chosen), { replace: true })}
            />
          )}
        </div>
        <CataloguePanel entries={entries} onExample={give} />
      </div>
    </div>
  );
}

const Limits = ({ rows, bytes, seconds, memory }: Catalogue['limits']) => (
  <p class="second">
    reads the snapshot, in a process of its own · at most {seconds} s, {memory.replace(/(?<=\d)(?=[A-Z])/, ' ')} of memory,{' '}
    {rows.toLocaleString('en')} rows or {Math.round(bytes / 2 ** 20)} MB
  </p>
);

function Notice({ error, again }: { error: Refused; again?: () => void }) {
  return (
    <div class="notice" role="alert">
      <strong>{error.message}</strong> {error.help} {again && <PassingButton onPress={again}>Try again</PassingButton>}
    </div>
  );
}

interface ToolsProps {
  answer: Catalogue | undefined;
  text: string;
  isRunning: boolean;
  onChoose(sql: string): void;
  run(): void;
  cancel(): void;
}

function Tools({ answer, text, isRunning, onChoose, run, cancel }: ToolsProps) {
  const [copied, setCopied] = useState('');
  const copy = async () => {
    const link = `${location.origin}${PREFIX}${pathOf(text)}`;
    setCopied((await copyText(link)) ? 'Copied.' : 'This browser does not let a page copy: take the address.');
  };
  return (
    <div class="sql-tools">
      <span class="second" role="status">
        {copied}
      </span>
      <Menu label="Examples">
        {close => {
          const choose = (sql: string) => {
            onChoose(sql);
            close();
          };
          return (
            <>
              <Recipes title="Questions" recipes={answer?.questions ?? []} onChoose={choose} />
              <Recipes title={COOKBOOK} recipes={answer?.cookbook ?? []} onChoose={choose} />
            </>
          );
        }}
      </Menu>
      <Menu label="History">
        {close => (
          <History
            onChoose={sql => {
              onChoose(sql);
              close();
            }}
          />
        )}
      </Menu>
      <button type="button" onClick={() => void copy()}>
        Copy link
      </button>
      {isRunning ? (
        <Button class="primary" isOff={false} onPress={cancel}>
          Cancel <kbd>Esc</kbd>
        </Button>
      ) : (
        <Button class="primary" isOff={!text.trim()} onPress={run}>
          Run <kbd>Ctrl-Enter</kbd>
        </Button>
      )}
    </div>
  );
}

const COOKBOOK = 'Cookbook: of the year 2025, change the dates';

type Recipe = Catalogue['cookbook'][number];

function Recipes({ title, recipes, onChoose }: { title: string; recipes: readonly Recipe[]; onChoose(sql: string): void }) {
  return (
    <>
      <h2>{title}</h2>
      <ul>
        {recipes.map(({ question, sql }, at) => (
          <li key={sql}>
            <button type="button" onClick={() => onChoose(sql)}>
              {question}
              {recipes[at - 1]?.question === question ? ' (continued)' : ''}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

function History({ onChoose }: { onChoose(sql: string): void }) {
  const [past, setPast] = useState(readHistory);
  if (!past.length) return <p class="second">What you run is kept here, in this browser alone.</p>;
  return (
    <>
      <h2>Run in this browser</h2>
      <ul>
        {past.map(({ sql, at }) => (
          <li key={sql}>
            <button type="button" onClick={() => onChoose(sql)}>
              <span class="second">{new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC</span>{' '}
              {sql.replace(/\s+/g, ' ').slice(0, 90)}
            </button>
          </li>
        ))}
      </ul>
      <button
        type="button"
        onClick={() => {
          clearHistory();
          setPast([]);
        }}
      >
        Forget them all
      </button>
    </>
  );
}

function Outcome({ asked: { sql, result, error, isRunning }, bytes }: { asked: Asked; bytes: number }) {
  const [isSaving, setSaving] = useState(false);
  const [refused, setRefused] = useState<Refused>();
  const csv = async () => {
    setSaving(true);
    setRefused(undefined);
    try {
      const response = await send('POST sql/export', { id: crypto.randomUUID(), sql });
      const name = /filename="([^"]+)"/.exec(response.headers.get('content-disposition') ?? '')?.[1];
      save(await response.blob(), name ?? 'result.csv');
    } catch (thrown) {
      setRefused(thrown as Refused);
    }
    setSaving(false);
  };
  const cut = result?.end && cutText(result.end, { bytes });
  return (
    <section class="card sql-result" aria-labelledby="sql-result">
      <header>
        <div class="sql-said" role="status">
          <h2 id="sql-result">{isRunning ? 'Running …' : error ? 'No whole result' : result ? headOf(result) : ''}</h2>
          <span class="second">
            {isRunning ? 'Esc cancels' : result?.end && `${(result.end.ms / 1000).toFixed(2)} s · ${result.end.cut ? 'cut' : 'whole'}`}
          </span>
        </div>
        {result?.end && result.columns.length > 0 && (
          <Button class="sql-csv" isOff={isSaving} onPress={() => void csv()}>
            {isSaving ? 'Asking again …' : result.end.cut ? `CSV of the first ${result.rows} rows` : 'CSV'}
          </Button>
        )}
      </header>
      {error && <Notice error={error} />}
      {refused && <Notice error={refused} />}
      {cut && <p class="sql-cut">{cut}</p>}
      {result && !result.columns.length && <p class="second">The statement was run; it gives no rows.</p>}
      {result && isPlan(result.columns) && !isRunning && <pre class="sql-plan">{result.values[1]?.join('\n')}</pre>}
      {result && result.columns.length > 0 && !isPlan(result.columns) && <ResultTable key={sql} result={result} />}
    </section>
  );
}

/** The result of EXPLAIN, drawn in lines already. */
const isPlan = (columns: readonly { name: string }[]) => columns.map(({ name }) => name).join() === 'explain_key,explain_value';
