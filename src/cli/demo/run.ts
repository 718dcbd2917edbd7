import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { addDays, dayOfMicros } from '../../../schema/instant.ts';
import { findFreePort } from '../../app/free-port.ts';
import { readSettings, type Settings } from '../../base/config.ts';
import { messageOf, RingneckError, withDetail } from '../../base/errors.ts';
import { closeAll, Interrupted } from '../../base/interrupt.ts';
import { createLog } from '../../base/log.ts';
import { formatCount, printLine, printLines } from '../terminal/print.ts';
import { writeResult } from '../terminal/result.ts';
import { showRun } from '../terminal/run-progress.ts';
import { clearFolder, noteService, PEOPLE } from './folder.ts';
import { type Announced, createLines, demoWebhooks, openDemoReceiver, showLife } from './life.ts';

const FOLDER = 'data-demo';

/** Where it is installed, npx would look for a package of this name in the registry, which may be anybody's. */
const PROGRAM = /\/node_modules\/ringneck\//.test(import.meta.url) ? 'ringneck' : 'npx ringneck';

export interface DemoOptions {
  days: number;
  to?: string;
  keep?: true;
  wait: boolean;
}

/** The whole demo, from an empty folder to the end. */
export async function runDemo({ days, to, keep, wait }: DemoOptions, signal: AbortSignal): Promise<void> {
  const folder = resolve(FOLDER);
  await clearFolder(folder);
  const last = to ?? addDays(dayOfMicros(Date.now() * 1000), -1);
  const range = { from: addDays(last, 1 - days), to: last };

  printLine(`1. The service, with three generated people and their data from ${range.from} to ${range.to}`);
  const { child, announced } = await startService(folder, range, signal);
  const closing: (() => Promise<unknown> | unknown)[] = [() => endService(child)];
  try {
    const { url, people, client } = announced;
    printLine(`   ${url}  ${people.map(({ name }) => name).join(', ')}; its interface is described at ${url}/docs`);

    printLine();
    printLine('2. Backfill over HTTP into DuckDB');
    const port = await findFreePort();
    const settings = { ...demoSettings(folder, url), webhooks: demoWebhooks(port, client) };
    const [{ App }, { commandsOf }, { serveControl }, { followEvents }] = await Promise.all([
      import('../../app/app.ts'),
      import('../../app/commands.ts'),
      import('../../app/control/serve-control.ts'),
      import('../../app/follow-events.ts'),
    ]);
    noteService(folder, url);
    const app = await App.open({ settings, log: createLog({ level: 'warn', pretty: process.stderr.isTTY === true }) });
    closing.push(() => app.close());
    const commands = commandsOf(app);
    const control = await serveControl({ folder, commands, log: app.log });
    closing.push(() => control.close());
    for (const { name, token } of people) await commands.addAccount({ name, token });
    const progress = showRun();
    const started = performance.now();
    const report = await commands
      .backfill({ ...range, refresh: false, plan: false }, { emit: progress.update, signal })
      .finally(() => progress.end());
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    if (report.state === 'stopped') throw signal.reason;
    if (report.failures.length)
      throw new RingneckError(`the backfill failed: ${withDetail(report.failures[0]!.message, report.failures[0]!.detail)}`);
    printLine(
      `   ${formatCount(report.documents)} documents and ${formatCount(report.samples)} samples in ${seconds} s, ${formatCount(report.requests)} requests`,
    );

    printLine();
    printLine('3. Questions');
    const { path } = await commands.snapshot({}, { signal });
    await ask(path, wait && process.stdin.isTTY === true, signal);

    printLine('4. A minute of life: rings sync, the service announces what changed, and it is fetched at once');
    const lines = createLines();
    // Before us the service ends, or it would not be told that we have gone.
    closing.push(await openDemoReceiver(await followEvents(app), port, lines.show), () => endService(child));
    const { active } = await commands.subscriptionsEnsure({});
    printLine(`   ${active} subscriptions, one for each kind of data and of change`);
    await showLife(app, announced, { wait, signal, lines });
    await commands.snapshot({}, { signal });

    const live = relative('.', join(folder, 'warehouse.duckdb'));
    printLine(`The warehouse is ${live}, a plain DuckDB file. Ask it more:`);
    printLine(`   RINGNECK_DATA=${FOLDER} ${PROGRAM} sql "SELECT * FROM daily_activity LIMIT 5"`);
    if (keep) {
      printLine(`   RINGNECK_DATA=${FOLDER} ${PROGRAM} status`);
      printLine();
      printLine(`Service and warehouse go on (${url}); Ctrl-C ends them.`);
      await new Promise<void>(done => signal.addEventListener('abort', () => done(), { once: true }));
    }
  } finally {
    await closeAll(closing);
  }
}

/** The demo has its own settings, whatever the environment says. */
function demoSettings(folder: string, serviceUrl: string): Settings {
  return readSettings({ RINGNECK_DATA: folder, RINGNECK_SERVICE_URL: serviceUrl });
}

/** The service runs as a process of its own, as a real one does; it ends with this process, however that ends. */
async function startService(
  folder: string,
  { from, to }: { from: string; to: string },
  signal: AbortSignal,
): Promise<{ child: ChildProcess; announced: Announced }> {
  const main = new URL('../main.js', import.meta.url);
  const life = ['--delivery-delay', '1', '--allow-callback', '127.0.0.0/8'];
  const people = ['--people', String(PEOPLE.count), '--seed', String(PEOPLE.seed)];
  const args = ['service', ...people, '--from', from, '--to', to, '--port', '0', '--json', ...life];
  const child = fork(main, args, {
    env: { RINGNECK_DATA: folder, RINGNECK_LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    // Ctrl-C reaches the whole group: the service must outlive the pipeline's clean stop.
    detached: true,
  });
  const lines = createInterface({ input: child.stdout! });
  try {
    const first = await Promise.race([
      lines[Symbol.asyncIterator]().next(),
      new Promise<never>((_, reject) => {
        child.once('exit', code => reject(new RingneckError(`the service ended at its start (exit code ${code})`)));
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      }),
    ]);
    return { child, announced: JSON.parse(String(first.value)) as Announced };
  } catch (error) {
    child.kill();
    throw error instanceof RingneckError ? error : new RingneckError(`the service did not start: ${messageOf(error)}`);
  }
}

async function endService(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill();
  await ended;
}

async function ask(path: string, wait: boolean, signal: AbortSignal): Promise<void> {
  const [{ openReader }, { readQueries }] = await Promise.all([import('../../warehouse/query.ts'), import('../../warehouse/queries.ts')]);
  const reader = await openReader(path);
  const prompt = wait ? createInterface({ input: process.stdin, output: process.stderr }) : undefined;
  try {
    for (const { question, sql } of readQueries()) {
      printLine();
      printLine(`-- ${question}`);
      printLines(sql);
      await prompt?.question('(Enter) ', { signal }).catch(() => {
        throw new Interrupted();
      });
      printLine();
      await writeResult(await reader.query(sql), 'table', process.stdout);
      printLine();
    }
  } finally {
    prompt?.close();
    await reader.close();
  }
}
