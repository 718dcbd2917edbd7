import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureFolder, writeFileAtomically } from '../../base/files.ts';
import { escapeHtml } from '../../base/html.ts';

/**
 * Has this machine's browser show an address. It lives on after us, and gets none of our settings: some are secrets.
 * @param folder the data folder
 * @throws where no browser can be started
 */
export async function openBrowser(url: string, folder: string): Promise<ChildProcess> {
  const [{ default: open }, { environment }] = await Promise.all([import('open'), import('../../base/config.ts')]);
  // A browser of Windows finds no file of its Linux; arguments are nobody else's business there.
  const isWindows = process.platform === 'win32' || Boolean(environment.WSL_DISTRO_NAME);
  const address = isWindows ? url : writePage(folder, url);
  const ours = Object.fromEntries(Object.entries(environment).filter(([name]) => name.startsWith('RINGNECK_')));
  // The package hands on all that there is as the browser starts.
  for (const name of Object.keys(ours)) delete environment[name];
  try {
    return await open(address);
  } finally {
    Object.assign(environment, ours);
  }
}

/**
 * A page that leads to an address, for its owner alone: all users of a machine see what programs are started with, and whoever comes first
 * can use the address.
 */
function writePage(folder: string, url: string): string {
  const path = join(folder, 'open.html');
  const to = escapeHtml(url);
  ensureFolder(folder);
  writeFileAtomically(
    path,
    `<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=${to}">
<title>Ringneck</title>
<p><a href="${to}" rel="noreferrer">${to}</a></p>
`,
  );
  return pathToFileURL(path).href;
}
