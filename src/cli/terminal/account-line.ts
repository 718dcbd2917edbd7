import type { AccountReport } from '../../app/commands.ts';
import { mendParked } from '../../app/cures.ts';
import { remark } from '../../base/remark.ts';
import { printJson, printLine } from './print.ts';

export function printAccount(report: AccountReport, { json }: { json?: true }): void {
  if (json) printJson(report);
  else {
    printLine(`${report.user_id} ${report.state}${report.reason ? `: ${report.reason}` : ''}`);
    const mend = mendParked(report);
    if (mend) remark(`${report.user_id}: ${mend}`);
  }
}
