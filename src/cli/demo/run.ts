import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { relative, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { addDays, dayOfMicros } from '../../../schema/instant.ts';
import type { App } from '../../app/app.ts';
import type { AppCommands } from '../../app/commands.ts';
import { findFreePort } from '../../app/free-port.ts';
import { writeResult } from '../../app/query/write-result.ts';
import { readSettings, type Settings } from '../../base/config.ts';
import { messageOf, RingneckError, withDetail } from '../../base/errors.ts';
import { closeAll, Interrupted } from '../../base/interrupt.ts';
import { createLog } from '../../base/log.ts';
import { warehouseIn } from '../../base/warehouse-file.ts';
import type { DayRange } from '../../ledger/windows.ts';
import { formatCount, printLine, printLines } from '../terminal/print.ts';
import { showRun } from '../terminal/run-progress.ts';
import { clearFolder, noteService, PEOPLE } from './folder.ts';
import { type Announced, demoWebhooks, EventLines, openDemoReceiver, showLiveEvents } from './live-events.ts';
import { signIn } from './sign-in.ts';

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
export async function runDemo(options: DemoOptions, signal: AbortSignal): Promise<void> {
  const demo = new Demo(options, signal);
  try {
    await demo.run();
  } finally {
    await demo.close();
  }
}

class Demo {
  readonly #options: DemoOptions;
  readonly #signal: AbortSignal;
  readonly #folder = resolve(FOLDER);
  readonly #closing: (() => unknown)[] = [];

  constructor(options: DemoOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
  }

  async run(): Promise<void> {
    await clearFolder(this.#folder);
    const { days, to: last = addDays(dayOfMicros(Date.now() * 1000), -1) } = this.#options;
    const range = { from: addDays(last, 1 - days), to: last };

    printLine(`1. The service, with three generated people and their data from ${range.from} to ${range.to}`);
    const { child, announced } = await startService(this.#folder, range, this.#signal);
    this.#closing.push(() => endService(child));
    const { url, people, client } = announced;
    printLine(`   ${url}  ${people.map(({ name }) => name).join(', ')}; its interface is described at ${url}/docs`);

    printLine();
    printLine('2. Backfill over HTTP into DuckDB');
    const port = await findFreePort();
    noteService(this.#folder, url);
    const { app, commands } = await this.#openApp({ ...demoSettings(this.#folder, url, client), webhooks: demoWebhooks(port, client) });
    for (const person of people) await signIn(commands, person, this.#signal);
    printLine('   each has signed in, as with ringneck account login, and allowed what Ringneck asks for');
    await this.#backfill(commands, range);

    printLine();
    printLine('3. Questions');
    const { path } = await commands.snapshot({}, { signal: this.#signal });
    await ask(path, this.#options.wait && process.stdin.isTTY === true, this.#signal);

    printLine('4. A minute of life: rings sync, the service announces what changed, and it is fetched at once');
    await this.#followEvents(app, commands, announced, port, child);
    await this.#sayGoodbye(url, app, commands);
  }

  close(): Promise<void> {
    return closeAll(this.#closing);
  }

  async #openApp(settings: Settings): Promise<{ app: App; commands: AppCommands }> {
    const [{ App }, { commandsOf }, { serveControl }] = await Promise.all([
      import('../../app/app.ts'),
      import('../../app/commands.ts'),
      import('../../app/control/serve-control.ts'),
    ]);
    const app = await App.open({ settings, log: createLog({ level: 'warn', pretty: process.stderr.isTTY === true }) });
    this.#closing.push(() => app.close());
    const commands = commandsOf(() => app);
    const control = await serveControl({ folder: this.#folder, commands, log: app.log });
    this.#closing.push(() => control.close());
    return { app, commands };
  }

  async #backfill(commands: AppCommands, range: DayRange): Promise<void> {
    const progress = showRun();
    const started = performance.now();
    const report = await commands
      .backfill({ ...range, refresh: false, plan: false }, { emit: progress.update, signal: this.#signal })
      .finally(() => progress.end());
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    if (report.state === 'stopped') throw this.#signal.reason;
    const [failure] = report.failures;
    if (failure) throw new RingneckError(`the backfill failed: ${withDetail(failure.message, failure.detail)}`);
    const { documents, samples, requests } = report;
    printLine(
      `   ${formatCount(documents)} documents and ${formatCount(samples)} samples in ${seconds} s, ${formatCount(requests)} requests`,
    );
  }

  async #followEvents(app: App, commands: AppCommands, announced: Announced, port: number, child: ChildProcess): Promise<void> {
    const { Following } = await import('../../app/follow-events.ts');
    const lines = new EventLines();
    const close = await openDemoReceiver(await Following.open(app), port, line => lines.show(line));
    // Before us the service ends, or it would not be told that we have gone.
    this.#closing.push(close, () => endService(child));
    const { active } = await commands.subscriptionsEnsure({});
    printLine(`   ${active} subscriptions, one for each kind of data and of change`);
    await showLiveEvents(app, announced, { wait: this.#options.wait, signal: this.#signal, lines });
    await commands.snapshot({}, { signal: this.#signal });
  }

  async #sayGoodbye(url: string, app: App, commands: AppCommands): Promise<void> {
    const warehouse = relative('.', warehouseIn(this.#folder));
    printLine(`The warehouse is ${warehouse}, a plain DuckDB file. Ask it more:`);
    printLine(`   RINGNECK_DATA=${FOLDER} ${PROGRAM} sql "SELECT * FROM daily_activity LIMIT 5"`);
    if (!this.#options.keep) {
      printLine('Look at it, in the browser:');
      printLine(`   RINGNECK_DATA=${FOLDER} ${PROGRAM} console`);
      return;
    }
    printLine(`   RINGNECK_DATA=${FOLDER} ${PROGRAM} status`);
    const link = await this.#serveConsole(app, commands);
    printLine();
    printLine('Look at it, in the browser, within a minute by this link:');
    printLine(`   ${link}`);
    printLine(`or later by a fresh one: RINGNECK_DATA=${FOLDER} ${PROGRAM} console`);
    printLine();
    printLine(`Service and warehouse go on (${url}); Ctrl-C ends them.`);
    await new Promise<void>(done => this.#signal.addEventListener('abort', () => done(), { once: true }));
  }

  /** @returns a link that opens it once */
  async #serveConsole(app: App, commands: AppCommands): Promise<string> {
    const [{ openConsole }, { keepUpToDate }] = await Promise.all([
      import('../../console/server/console.ts'),
      import('../../app/snapshot/schedule.ts'),
    ]);
    const { settings, log, now } = app;
    const served = await openConsole({ settings, commands, log, now }, { host: '127.0.0.1', port: 0 });
    this.#closing.push(() => served.close());
    app.console = served;
    const kept = await keepUpToDate(app);
    this.#closing.push(() => kept.close());
    return served.createLink({ role: 'operator', person: null });
  }
}

/** The demo has its own settings, whatever the environment says; its people are made up, and all of them may be kept. */
function demoSettings(folder: string, serviceUrl: string, { id, secret }: Announced['client']): Settings {
  return readSettings({
    RINGNECK_DATA: folder,
    RINGNECK_SERVICE_URL: serviceUrl,
    RINGNECK_CLIENT_ID: id,
    RINGNECK_CLIENT_SECRET: secret,
    RINGNECK_PERSONAL_INFO: '1',
  });
}

/** The service runs as a process of its own, as a real one does; it ends with this process, however that ends. */
async function startService(
  folder: string,
  { from, to }: { from: string; to: string },
  signal: AbortSignal,
): Promise<{ child: ChildProcess; announced: Announced }> {
  const main = new URL('../main.js', import.meta.url);
  const webhooks = ['--delivery-delay', '1', '--allow-callback', '127.0.0.0/8'];
  const people = ['--people', String(PEOPLE.count), '--seed', String(PEOPLE.seed)];
  const args = ['service', ...people, '--from', from, '--to', to, '--port', '0', '--json', ...webhooks];
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
    return { child, announced: JSON.parse(String(first.value)) };
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
  const [{ openQueries }, { readQueries }] = await Promise.all([
    import('../../warehouse/readers/query.ts'),
    import('../../warehouse/readers/queries.ts'),
  ]);
  const reader = await openQueries(path);
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
