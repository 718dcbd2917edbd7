import type { AccountReport } from '../../app/account-commands.ts';
import { printJson, printLine } from './print.ts';

export function printAccount(report: AccountReport, { json }: { json?: true }): void {
  if (json) printJson(report);
  else printLine(`${report.user_id} ${report.state}${report.reason ? `: ${report.reason}` : ''}`);
}
