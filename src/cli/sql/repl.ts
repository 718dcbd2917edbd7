import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { getSource } from '../../app/find-source.ts';
import type { Page } from '../../app/query/frames.ts';
import type { Limits } from '../../app/query/query-process.ts';
import { QueryRunner } from '../../app/query/query-runner.ts';
import type { Settings } from '../../base/config.ts';
import { messageOf, RingneckError } from '../../base/errors.ts';
import { Interrupted } from '../../base/interrupt.ts';
import { printable } from '../../base/printable.ts';
import { noteLines, noteStale } from '../terminal/note.ts';
import { printLine, printLines } from '../terminal/print.ts';
import { complete } from './complete.ts';
import { COMMANDS, findDotCommand, type ReplSettings, runDotCommand } from './dot-commands.ts';
import { HISTORY_LINES, type History, openHistory } from './history.ts';
import { formatPage, ROWS_SHOWN } from './page.ts';
import { isComplete, isJoinable } from './statement.ts';

const PROMPT = 'ringneck> ';
const CONTINUED = '     ...> ';
const COMPLETE_MS = 5_000;

/** Asks and answers until its user leaves. Nothing is open between two statements. */
export async function runPrompt(settings: Settings, limits: Limits): Promise<void> {
  const runner = new QueryRunner({ settings, limits, tellStale: noteStale });
  try {
    const { path } = await getSource(settings);
    printLine(`${path}, read-only. End a statement with ; and see .help; Ctrl-D leaves.`);
    await new Repl(settings.data, runner).run();
  } finally {
    await runner.end();
  }
}

class Repl {
  readonly #runner: QueryRunner;
  readonly #history: History;
  readonly #settings: ReplSettings = { rows: ROWS_SHOWN, timing: true };
  readonly #lines: Interface;
  /** The lines of a statement that is not complete yet. */
  #entered: string[] = [];
  #running: AbortController | undefined;
  /** Whether Ctrl-C came last, with nothing typed: the next one leaves. */
  #interrupted = false;
  /** The history as node:readline keeps it. */
  #shown: string[] | undefined;

  constructor(data: string, runner: QueryRunner) {
    this.#runner = runner;
    this.#history = openHistory(join(data, 'sql_history'));
    this.#lines = createInterface({
      input: process.stdin,
      output: process.stdout,
      prompt: PROMPT,
      history: [...this.#history.lines],
      historySize: HISTORY_LINES,
      removeHistoryDuplicates: true,
      completer: (line: string, done: (error: null, result: [string[], string]) => void) => {
        this.#complete(line).then(
          found => done(null, found),
          () => done(null, [[], line]),
        );
      },
    });
    this.#lines.on('history', array => {
      this.#shown = array;
    });
    this.#lines.on('SIGINT', () => this.#interrupt());
  }

  async run(): Promise<void> {
    const lines = this.#lines;
    // The terminal is given back as it was.
    const leave = () => {
      lines.close();
      process.exit(143);
    };
    process.once('SIGTERM', leave);
    process.once('SIGHUP', leave);
    try {
      lines.prompt();
      for await (const line of lines) {
        this.#interrupted = false;
        if (!(await this.#take(line))) return;
        lines.setPrompt(this.#entered.length ? CONTINUED : PROMPT);
        lines.prompt(true);
      }
      printLine();
    } finally {
      lines.close();
      process.off('SIGTERM', leave);
      process.off('SIGHUP', leave);
    }
  }

  /** @returns whether the prompt goes on */
  async #take(line: string): Promise<boolean> {
    const command = findDotCommand(line, this.#entered.length > 0);
    if (command !== undefined) {
      this.#keep([line]);
      const said = await this.#work(signal =>
        runDotCommand(command, this.#settings, () => this.#runner.readCatalogue(signal), process.stdout.columns),
      );
      if (said) printLines(said);
      return said !== undefined;
    }
    if (!this.#entered.length && !line.trim()) return true;
    this.#entered.push(line);
    const text = this.#entered.join('\n');
    if (!isComplete(text)) return true;
    this.#keep(this.#entered);
    this.#entered = [];
    await this.#work(signal => this.#showAnswers(text, signal));
    return true;
  }

  /** Does what Ctrl-C may interrupt; what goes wrong is said. */
  async #work<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T | ''> {
    const running = new AbortController();
    this.#running = running;
    try {
      return await work(running.signal);
    } catch (error) {
      if (!(error instanceof RingneckError) && !running.signal.aborted) noteLines(String(error));
      else noteLines(running.signal.aborted ? 'interrupted' : messageOf(error));
      return '';
    } finally {
      this.#running = undefined;
    }
  }

  async #showAnswers(sql: string, signal: AbortSignal): Promise<void> {
    const { rows, timing } = this.#settings;
    let from = performance.now();
    const show = (page: Page) => {
      const seconds = (performance.now() - from) / 1000;
      printLines(formatPage(page, { more: '.rows N', time: timing ? `${seconds.toFixed(seconds < 10 ? 2 : 1)} s` : undefined }));
      from = performance.now();
    };
    await this.#runner.ask({ sql, as: { pageOf: rows } }, frame => void (frame.kind === 'page' && show(frame.page)), signal);
  }

  /** An entry of several lines comes back as one, where it then says the same. */
  #keep(entry: readonly string[]): void {
    const joined = entry.map(line => line.trim()).join(' ');
    const flat = isJoinable(entry.join('\n')) ? [joined.trim()] : entry;
    for (const line of flat) if (line) this.#history.add(printable(line.replaceAll('\t', ' ')));
    this.#shown?.splice(0, this.#shown.length, ...this.#history.lines);
  }

  async #complete(line: string): Promise<[string[], string]> {
    // While a query runs, its process is not disturbed.
    if (this.#running) return [[], line];
    const catalogue = await this.#runner.readCatalogue(AbortSignal.timeout(COMPLETE_MS));
    return complete(catalogue, COMMANDS, this.#entered.join('\n'), line);
  }

  #interrupt(): void {
    if (this.#running) return void this.#running.abort(new Interrupted());
    const lines = this.#lines;
    const typed = lines.line !== '' || this.#entered.length > 0;
    if (!typed && this.#interrupted) return void lines.close();
    this.#interrupted = !typed;
    lines.write(null, { ctrl: true, name: 'e' });
    lines.write(null, { ctrl: true, name: 'u' });
    this.#entered = [];
    printLine(typed ? '^C' : '^C (again, or Ctrl-D, to leave)');
    lines.setPrompt(PROMPT);
    lines.prompt();
  }
}
