import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { RingneckError } from '../../base/errors.ts';
import { printable } from '../../base/printable.ts';

const BROWSERS = [
  ...['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome', 'microsoft-edge', 'brave-browser'],
  ...['/Applications/Google Chrome.app/Contents/MacOS/Google Chrome', '/Applications/Chromium.app/Contents/MacOS/Chromium'],
];
const MS = 60_000;
const INSTEAD = 'or leave --pdf out and print the page from a browser';

export interface PrintOptions {
  /** RINGNECK_CHROMIUM; undefined: the first that there is. */
  browser: string | undefined;
  /** That of the browser: nothing of ours that is secret. */
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
  /** Milliseconds that it may take. */
  limit?: number;
}

/**
 * A page of HTML as PDF, by a Chromium of this machine, which has a profile of its own that is removed with it.
 * @throws RingneckError where none is found, and where it makes none
 */
export async function printPdf(html: string, options: PrintOptions): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'ringneck-report-'));
  try {
    const page = join(folder, 'report.html');
    writeFileSync(page, html, { mode: 0o600 });
    const pdf = join(folder, 'report.pdf');
    const names = options.browser === undefined ? BROWSERS : [options.browser];
    for (const name of names) {
      const said = await run(name, argumentsFor(folder, page, pdf), options);
      if (said === undefined) continue;
      if (statSync(pdf, { throwIfNoEntry: false })?.size) return readFileSync(pdf);
      throw new RingneckError(`${name} made no PDF${adviceFor(said)}; ${INSTEAD}`);
    }
    throw new RingneckError(
      options.browser === undefined
        ? `--pdf needs Chromium, and none is found: install it (apt install chromium), or name one by RINGNECK_CHROMIUM, ${INSTEAD}`
        : `RINGNECK_CHROMIUM names no program that can be started, ${options.browser}: correct it, ${INSTEAD}`,
    );
  } finally {
    // A browser that was ended may still write for a moment.
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

function argumentsFor(folder: string, page: string, pdf: string): string[] {
  return [
    ...['--headless', '--disable-gpu', '--no-first-run', '--no-default-browser-check', '--disable-extensions', '--disable-sync'],
    ...['--disable-background-networking', '--disable-component-update', '--disable-dev-shm-usage', '--disable-breakpad'],
    // Nothing is asked of anybody; the page's own policy lets no script run.
    ...['--host-resolver-rules=MAP * ~NOTFOUND'],
    // As root it refuses to start with its sandbox. What it opens is our own page alone.
    ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
    `--user-data-dir=${join(folder, 'profile')}`,
    '--no-pdf-header-footer',
    `--print-to-pdf=${pdf}`,
    pathToFileURL(page).href,
  ];
}

/** What it has said by its end; undefined where there is no such program. */
async function run(name: string, args: readonly string[], { env, signal, limit = MS }: PrintOptions): Promise<string | undefined> {
  signal.throwIfAborted();
  // In a group of its own, so that all of its processes end together.
  const child = spawn(name, args, { env, detached: true, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', text => {
    said = `${said}${text}`.slice(-20_000);
  });
  let isLate = false;
  const end = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  };
  const timer = setTimeout(() => {
    isLate = true;
    end();
  }, limit);
  signal.addEventListener('abort', end);
  try {
    const isThere = await new Promise<boolean>((resolve, reject) => {
      child.once('error', (error: NodeJS.ErrnoException) => (isNoProgram(error) ? resolve(false) : reject(error)));
      child.once('exit', () => resolve(true));
    });
    signal.throwIfAborted();
    if (isLate) throw new RingneckError(`${name} made no PDF in ${limit / 1000} s; ${INSTEAD}`);
    return isThere ? said : undefined;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    end();
  }
}

const isNoProgram = ({ code }: NodeJS.ErrnoException) => code === 'ENOENT' || code === 'EACCES' || code === 'ENOTDIR';

function adviceFor(said: string): string {
  if (/sandbox/i.test(said)) return ': it has no sandbox here, as in some containers';
  const [last] = said
    .split('\n')
    .filter(line => /:ERROR:|:FATAL:/.test(line))
    .slice(-1);
  const why = last === undefined ? '' : ` (${printable(last).slice(0, 200)})`;
  return `${why}: one that was installed as a snap cannot read ${tmpdir()}, set TMPDIR to a folder in your home`;
}
