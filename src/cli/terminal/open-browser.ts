import type { ChildProcess } from 'node:child_process';

/**
 * Has this machine's browser show an address. It lives on after us, and gets none of our settings: some are secrets.
 * @throws where no browser can be started
 */
export async function openBrowser(url: string): Promise<ChildProcess> {
  const [{ default: open }, { environment }] = await Promise.all([import('open'), import('../../base/config.ts')]);
  const ours = Object.fromEntries(Object.entries(environment).filter(([name]) => name.startsWith('RINGNECK_')));
  // The package hands on all that there is as the browser starts.
  for (const name of Object.keys(ours)) delete environment[name];
  try {
    return await open(url);
  } finally {
    Object.assign(environment, ours);
  }
}
