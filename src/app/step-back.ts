import { writeFileSync } from 'node:fs';
import { constants, setPriority } from 'node:os';

/** Of a process that answers who looks. The pipeline comes first: for the processor, and when the system has no memory left and looks for whom to end. */
export function stepBack(): void {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
    writeFileSync('/proc/self/oom_score_adj', '1000');
  } catch {
    // Not every system has these.
  }
}
