/** A failure that may come from elsewhere: who waits for `failed` hears of it, and it may come while nobody does. */
export interface Failure {
  readonly failed: Promise<never>;
  fail(error: unknown): void;
}

export function createFailure(): Failure {
  let fail: (error: unknown) => void = () => undefined;
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => undefined);
  return { failed, fail };
}
