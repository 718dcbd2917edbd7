/** How much of what a user's ring recorded has reached the service. Moments in seconds since the Unix epoch. */
export interface View {
  /** Up to this day, a day number, everything is there. */
  wholeTo: number;
  /** When the ring last synced: what it had recorded and finished by then is there. */
  synced: number;
  /** When activity and stress last came in the background. */
  uploaded: number;
}

/** Everything up to a day, and nothing after it. */
export const wholeView = (wholeTo: number): View => ({ wholeTo, synced: 0, uploaded: 0 });
