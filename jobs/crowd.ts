/** What one account may take of the workers that all share. */
export interface CrowdLimits {
  /** Jobs of one account that may always be worked on. */
  most: number;
  /** More are taken for as long as none has been worked on for longer. */
  patienceMs: number;
}

/**
 * Keeps one account whose service does not answer from filling the workers. The function takes a place for a job and gives what leaves
 * it again; nothing where the account has to wait.
 */
export function createCrowd({ most, patienceMs }: CrowdLimits, now: () => number): (userId: string) => (() => void) | undefined {
  const working = new Map<string, Set<{ since: number }>>();
  return userId => {
    const jobs = working.get(userId) ?? new Set();
    // In the order in which they came.
    const [oldest] = jobs;
    if (oldest && jobs.size >= most && now() - oldest.since > patienceMs) return undefined;
    const job = { since: now() };
    jobs.add(job);
    working.set(userId, jobs);
    return () => {
      jobs.delete(job);
      if (!jobs.size) working.delete(userId);
    };
  };
}
