/** Whether a run has much to read, which is shown later than it comes: a sweep looks for a little, every few hours. */
export const readsMuch = ({ kind }: { kind: string }): boolean => kind !== 'sweep';
