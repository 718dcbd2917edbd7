import { printableLines } from '../../base/printable.ts';

/** Whether it is the result of EXPLAIN: DuckDB's own shell tells by the same names. */
export const isPlan = (columns: readonly { name: string }[]) => columns.map(({ name }) => name).join() === 'explain_key,explain_value';

/** A plan is drawn in lines already. */
export const formatPlan = (rows: readonly (readonly (string | null)[])[]) =>
  rows.map(([, plan]) => printableLines((plan ?? '').trimEnd())).join('\n');
