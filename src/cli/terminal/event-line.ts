import { printable } from '../../base/printable.ts';
import type { EventLine } from '../../sync/events/advance-event.ts';

/** As long as the longest kind of data. */
const DATA_TYPE_WIDTH = 24;

/** `12:03:22 update sleep ben: stored 41 ms after the event reached us`. */
export function formatEvent({ at, event_type, data_type, user_id, outcome, ms }: EventLine): string {
  const clock = new Date(at).toTimeString().slice(0, 8);
  return printable(
    `${clock}  ${event_type.padEnd(6)} ${data_type.padEnd(DATA_TYPE_WIDTH)} ${(user_id ?? '?').padEnd(6)} ${outcome} ${Math.round(ms)} ms after the event reached us`,
  );
}
