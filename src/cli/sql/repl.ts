import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { getSource } from '../../app/find-source.ts';
import type { Settings } from '../../base/config.ts';
import { messageOf, RingneckError } from '../../base/errors.ts';
import { Interrupted } from '../../base/interrupt.ts';
import { printable } from '../../base/printable.ts';
import { noteLines } from '../terminal/note.ts';
import { printLine, printLines } from '../terminal/print.ts';
import type { Limits } from './ask.ts';
import { complete } from './complete.ts';
import { COMMANDS, type ReplSettings, runDotCommand } from './dot-commands.ts';
import type { Page } from './frames.ts';
import { HISTORY_LINES, openHistory } from './history.ts';
import { formatPage, ROWS_SHOWN } from './page.ts';
import { createQueryRunner, type QueryRunner } from './query-runner.ts';
import { isComplete, isJoinable } from './statement.ts';

const PROMPT = 'ringneck> ';
const CONTINUED = '     ...> ';

/** Asks and answers until its user leaves. Nothing is open between two statements. */
export async function runPrompt(settings: Settings, limits: Limits): Promise<void> {
  const runner = createQueryRunner(settings, limits);
  try {
    const { path } = await getSource(settings);
    printLine(`${path}, read-only. End a statement with ; and see .help; Ctrl-D leaves.`);
    await runRepl(settings.data, runner);
  } finally {
    await runner.end();
  }
}

async function runRepl(data: string, runner: QueryRunner): Promise<void> {
  const history = openHistory(join(data, 'sql_history'));
  const replSettings: ReplSettings = { rows: ROWS_SHOWN, timing: true };
  let entered: string[] = [];
  let running: AbortController | undefined;
  let interrupted = false;

  const lines = createInterface({
    input: process.stdin,
    output: process.stdout,
    prompt: PROMPT,
    history: [...history.lines],
    historySize: HISTORY_LINES,
    removeHistoryDuplicates: true,
    completer: (line: string, done: (error: null, result: [string[], string]) => void) => {
      // While a query runs, its process is not disturbed.
      if (running) return done(null, [[], line]);
      runner.readCatalogue(AbortSignal.timeout(COMPLETE_MS)).then(
        catalogue => done(null, complete(catalogue, COMMANDS, entered.join('\n'), line)),
        () => done(null, [[], line]),
      );
    },
  });
  /** An entry of several lines comes back as one, where it then says the same. */
  const keep = (entry: readonly string[]) => {
    const joined = entry.map(line => line.trim()).join(' ');
    const flat = isJoinable(entry.join('\n')) ? [joined.trim()] : entry;
    for (const line of flat) if (line) history.add(printable(line.replaceAll('\t', ' ')));
    shown?.splice(0, shown.length, ...history.lines);
  };
  let shown: string[] | undefined;
  lines.on('history', array => {
    shown = array;
  });
  lines.on('SIGINT', () => {
    if (running) return running.abort(new Interrupted());
    const typed = lines.line !== '' || entered.length > 0;
    if (!typed && interrupted) return lines.close();
    interrupted = !typed;
    clearLine(lines);
    entered = [];
    printLine(typed ? '^C' : '^C (again, or Ctrl-D, to leave)');
    lines.setPrompt(PROMPT);
    lines.prompt();
  });
  // The terminal is given back as it was.
  const leave = () => {
    lines.close();
    process.exit(143);
  };
  process.once('SIGTERM', leave);
  process.once('SIGHUP', leave);

  const run = async (work: (signal: AbortSignal) => Promise<unknown>) => {
    running = new AbortController();
    try {
      return await work(running.signal);
    } catch (error) {
      if (!(error instanceof RingneckError) && !running.signal.aborted) noteLines(String(error));
      else noteLines(running.signal.aborted ? 'interrupted' : messageOf(error));
      return '';
    } finally {
      running = undefined;
    }
  };

  try {
    lines.prompt();
    for await (const line of lines) {
      interrupted = false;
      if (!entered.length && line.trim().startsWith('.')) {
        keep([line]);
        const said = await run(signal => runDotCommand(line, replSettings, () => runner.readCatalogue(signal), process.stdout.columns));
        if (said === undefined) return;
        if (said) printLines(String(said));
      } else if (entered.length || line.trim()) {
        entered.push(line);
        const text = entered.join('\n');
        if (isComplete(text)) {
          keep(entered);
          entered = [];
          await run(signal => showAnswers(text, runner, replSettings, signal));
        }
      }
      lines.setPrompt(entered.length ? CONTINUED : PROMPT);
      lines.prompt(true);
    }
    printLine();
  } finally {
    lines.close();
    process.off('SIGTERM', leave);
    process.off('SIGHUP', leave);
  }
}

const COMPLETE_MS = 5_000;

async function showAnswers(sql: string, runner: QueryRunner, replSettings: ReplSettings, signal: AbortSignal): Promise<void> {
  let from = performance.now();
  const show = (page: Page) => {
    const seconds = (performance.now() - from) / 1000;
    printLines(formatPage(page, { more: '.rows N', time: replSettings.timing ? `${seconds.toFixed(seconds < 10 ? 2 : 1)} s` : undefined }));
    from = performance.now();
  };
  await runner.ask(sql, replSettings.rows, show, signal);
}

function clearLine(lines: Interface): void {
  lines.write(null, { ctrl: true, name: 'e' });
  lines.write(null, { ctrl: true, name: 'u' });
}
