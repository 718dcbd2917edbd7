import type { AccountReport } from '../../app/account-commands.ts';
import { fixParked } from '../../app/fixes.ts';
import { note } from './note.ts';
import { printJson, printLine } from './print.ts';

export function printAccount(report: AccountReport, { json }: { json?: true }): void {
  if (json) printJson(report);
  else {
    printLine(`${report.user_id} ${report.state}${report.reason ? `: ${report.reason}` : ''}`);
    const fix = fixParked(report);
    if (fix) note(`${report.user_id}: ${fix}`);
  }
}
