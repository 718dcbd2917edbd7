/** Whether there is a process of this number on this machine, as far as we can see. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it is somebody else's.
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}
