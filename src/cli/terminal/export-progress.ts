import type { ExportProgress } from '../../app/export/run.ts';
import { formatCount } from './print.ts';
import { barLine, type ShownProgress, showProgress } from './progress.ts';

const QUIET_MS = 5_000;

/** Shows how an export goes on stderr. */
export const showExport = (): ShownProgress<ExportProgress> => showProgress(() => ({ bar: exportLine, line: tellFacts }), QUIET_MS);

export function exportLine(progress: ExportProgress, columns: number): string {
  const { rows, now } = progress;
  return barLine(rows.total ? rows.done / rows.total : now === 'done' ? 1 : 0, tellFacts(progress), columns);
}

const tellFacts = ({ files, rows, now }: ExportProgress): string =>
  [...(files.total ? [`${formatCount(files.done)}/${formatCount(files.total)} files`, `${formatCount(rows.done)} rows`] : []), now].join(
    ', ',
  );
