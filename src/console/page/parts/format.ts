/** `7 h 21` of seconds. */
export function hoursAndMinutes(seconds: number): string {
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')}`;
}

/** `00:05` on the clock of an offset. @param offset seconds east of UTC */
export function clock(instant: number, offset: number): string {
  return new Date((instant + offset) * 1000).toISOString().slice(11, 16);
}

/** `UTC+5:45` @param offset seconds east of UTC */
export function offsetName(offset: number): string {
  const minutes = Math.abs(Math.round(offset / 60));
  const rest = minutes % 60 ? `:${String(minutes % 60).padStart(2, '0')}` : '';
  return `UTC${offset < 0 ? '−' : '+'}${Math.floor(minutes / 60)}${rest}`;
}
