import { createRequire } from 'node:module';
import { note } from './note.ts';

const require = createRequire(import.meta.url);

const LINE_EVERY_MS = 5_000;
const LONGEST_BAR = 24;
const SHORTEST_BAR = 4;
const USUAL_COLUMNS = 80;

export interface ShownProgress<Progress> {
  update(progress: Progress): void;
  end(): void;
}

/** How progress is put into words. */
export interface ProgressWords<Progress> {
  bar(progress: Progress, columns: number): string;
  line(progress: Progress): string;
}

/**
 * Shows how work goes on stderr: a bar on a terminal, a plain line now and then elsewhere.
 * @param begin is given the first progress that is shown: what is told may count from there
 * @param quietMs before that no plain line comes: what is often over at once needs none
 */
export function showProgress<Progress>(
  begin: (first: Progress, isBar: boolean) => ProgressWords<Progress>,
  quietMs = 0,
): ShownProgress<Progress> {
  return process.stderr.isTTY ? showBar(first => begin(first, true)) : showLines(first => begin(first, false), quietMs);
}

function showBar<Progress>(begin: (first: Progress) => ProgressWords<Progress>): ShownProgress<Progress> {
  let shown: { words: ProgressWords<Progress>; progress: Progress } | undefined;
  // Loaded only here: most output is no terminal.
  const { SingleBar }: typeof import('cli-progress') = require('cli-progress');
  const bar = new SingleBar({
    format: () => (shown ? shown.words.bar(shown.progress, process.stderr.columns || USUAL_COLUMNS) : ''),
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: false,
    linewrap: false,
    gracefulExit: false,
  });
  return {
    update(progress) {
      const isFirst = !shown;
      shown = { words: shown?.words ?? begin(progress), progress };
      if (isFirst) bar.start(1, 0);
    },
    end() {
      if (shown) bar.stop();
    },
  };
}

function showLines<Progress>(begin: (first: Progress) => ProgressWords<Progress>, quietMs: number): ShownProgress<Progress> {
  let next = Date.now() + quietMs;
  let words: ProgressWords<Progress> | undefined;
  return {
    update(progress) {
      words ??= begin(progress);
      if (Date.now() < next) return;
      next = Date.now() + LINE_EVERY_MS;
      note(words.line(progress));
    },
    end() {},
  };
}

/** A bar in what the text leaves of the width, the share and the text; cut where the terminal ends. */
export function barLine(share: number, text: string, columns: number): string {
  const rest = ` ${Math.floor(share * 100)}%  ${text}`;
  const size = Math.max(SHORTEST_BAR, Math.min(LONGEST_BAR, columns - 1 - rest.length));
  const full = Math.floor(share * size);
  return `${'█'.repeat(full)}${'░'.repeat(size - full)}${rest}`.slice(0, Math.max(0, columns - 1));
}
