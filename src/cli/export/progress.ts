import cliProgress from 'cli-progress';
import { formatCount, remark } from '../print.ts';
import type { ExportProgress } from './run.ts';

const LINE_EVERY_MS = 5_000;
const BAR = 20;
const USUAL_COLUMNS = 80;

/** Shows how an export goes on stderr: a bar on a terminal, a plain line now and then elsewhere. */
export function showExport(): { update(progress: ExportProgress): void; end(): void } {
  return process.stderr.isTTY ? showBar() : showLines();
}

function showBar() {
  let last: ExportProgress | undefined;
  const bar = new cliProgress.SingleBar({
    format: () => (last ? exportLine(last, process.stderr.columns || USUAL_COLUMNS) : ''),
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: false,
    linewrap: false,
    gracefulExit: false,
  });
  return {
    update(progress: ExportProgress) {
      if (!last) bar.start(1, 0);
      last = progress;
      bar.setTotal(Math.max(1, progress.rows.total));
      bar.update(progress.rows.done);
    },
    end() {
      if (last) bar.stop();
    },
  };
}

/** One line, cut where the terminal ends. */
export function exportLine({ files, rows, now }: ExportProgress, columns: number): string {
  const share = rows.total ? rows.done / rows.total : now === 'done' ? 1 : 0;
  const full = Math.floor(share * BAR);
  const bar = `${'█'.repeat(full)}${'░'.repeat(BAR - full)} ${Math.floor(share * 100)}%`;
  return [bar, ...facts({ files, rows, now })].join('  ').slice(0, columns - 1);
}

const facts = ({ files, rows, now }: ExportProgress) => [
  ...(files.total ? [`${formatCount(files.done)}/${formatCount(files.total)} files`, `${formatCount(rows.done)} rows`] : []),
  now,
];

function showLines() {
  let next = Date.now() + LINE_EVERY_MS;
  return {
    update(progress: ExportProgress) {
      if (Date.now() < next) return;
      next = Date.now() + LINE_EVERY_MS;
      remark(facts(progress).join(', '));
    },
    end() {},
  };
}
