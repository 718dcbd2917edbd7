import { remark } from '../remark.ts';
import { mendParked } from './cures.ts';
import type { AccountReport } from './operations.ts';
import { printJson, printLine } from './print.ts';

export function printAccount(report: AccountReport, { json }: { json?: true }): void {
  if (json) printJson(report);
  else {
    printLine(`${report.user_id} ${report.state}${report.reason ? `: ${report.reason}` : ''}`);
    const mend = mendParked(report);
    if (mend) remark(`${report.user_id}: ${mend}`);
  }
}
