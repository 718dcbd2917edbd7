import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { CheckResult } from '../../app/doctor/check-result.ts';
import { environment, readSettings } from '../../base/config.ts';
import { ENV_FILE } from '../../base/env-file.ts';
import { messageOf, RingneckError, UsageError } from '../../base/errors.ts';
import { type EnvFile, readEnvText, writeEnvFile } from '../../base/write-env-file.ts';
import { parseAccountName } from '../../ledger/accounts.ts';
import { withExample } from '../options.ts';
import { askHidden, askLine, askWhether } from '../terminal/ask.ts';
import { note } from '../terminal/note.ts';
import { printLine, printLines } from '../terminal/print.ts';
import { logIn } from './account-login.ts';

interface Options {
  serviceUrl?: string;
  clientId?: string;
  clientSecretFile?: string;
  data?: string;
  timeZone?: string;
  yes?: true;
}

type Values = Record<string, string>;

export function addInit(program: Command): void {
  withExample(
    program
      .command('init')
      .description('ask for the settings that a beginning needs, check each, and write them to .env; then offer to sign in')
      .option('--service-url <url>', 'base address of the service')
      .option('--client-id <id>', 'the client’s id at the service, for signing in')
      .option('--client-secret-file <file>', 'a file that holds the client’s secret')
      .option('--data <folder>', 'data folder')
      .option('--time-zone <zone>', 'time zone of the nightly schedule, as Europe/Zurich')
      .option('--yes', 'ask nothing, and replace settings of the file that differ'),
    'ringneck init',
    'ringneck init --service-url http://127.0.0.1:4000 --yes',
  ).action(async (options: Options) => {
    const path = program.opts<{ envFile?: string }>().envFile ?? ENV_FILE;
    const file = readEnvText(path);
    const isAsked = !options.yes && process.stdin.isTTY === true;
    const values = await findValues(options, isAsked);
    await ensureReplaceable(file, values, { ...options, isAsked });
    writeEnvFile(file, values);
    Object.assign(environment, values);
    printLine(
      `${file.path} is written: every command that is started in this folder reads it${path === ENV_FILE ? '' : ` with --env-file ${path}`}`,
    );
    await offerLogin(isAsked).finally(() => tellNext(path));
  });
}

/** What is set, each checked as `doctor` does. Nothing is kept of what fails. */
async function findValues(options: Options, isAsked: boolean): Promise<Values> {
  const values: Values = {};
  const settle = async (question: Question) => Object.assign(values, await answer(question, values, isAsked));
  await settle({
    question: 'Base address of the service',
    names: ['RINGNECK_SERVICE_URL'],
    given: [options.serviceUrl],
    need: '--service-url',
    check: async env => {
      const settings = readSettings(env);
      const { checkService } = await import('../../app/doctor/service.ts');
      return checkService({ ...settings, serviceUrl: settings.serviceUrl ?? '' });
    },
  });
  const secret = options.clientSecretFile === undefined ? undefined : readSecret(options.clientSecretFile);
  await settle({
    question: 'Id of your client there, for signing in',
    names: ['RINGNECK_CLIENT_ID', 'RINGNECK_CLIENT_SECRET'],
    given: [options.clientId, secret],
    check: async env => {
      const { signIn } = readSettings(env);
      const { checkClient } = await import('../../app/doctor/client.ts');
      return signIn ? checkClient(signIn) : [];
    },
  });
  await settle({
    question: 'Folder for the data',
    names: ['RINGNECK_DATA'],
    given: [options.data],
    fallback: './data',
    check: async env => {
      const { checkFolder, checkDisk } = await import('../../app/doctor/folder.ts');
      const { existingFolder } = await import('../../base/files.ts');
      const { data } = readSettings(env);
      // One that is not there yet is made by the first command.
      const found = checkFolder(data).filter(({ message }) => !message.endsWith('does not exist yet'));
      return [...found, ...checkDisk(existingFolder(data))];
    },
  });
  await settle({
    question: 'Time zone of the night',
    names: ['RINGNECK_TIME_ZONE'],
    given: [options.timeZone],
    fallback: readSettings({}).timeZone,
    check: understand,
  });
  return values;
}

/** @throws UsageError for what cannot be */
async function understand(env: NodeJS.ProcessEnv): Promise<CheckResult[]> {
  readSettings(env);
  return [];
}

interface Question {
  question: string;
  /** The setting, and a secret that belongs to it. */
  names: readonly [string, string?];
  given: readonly [string | undefined, string?];
  /** The option without which there is nothing to begin with. */
  need?: string;
  fallback?: string;
  /** @throws UsageError for a value that cannot be */
  check(env: NodeJS.ProcessEnv): Promise<CheckResult[]>;
}

/** The value from the options, else from the environment or the file, asked for where somebody sits there. */
async function answer({ question, names, given, need, fallback, check }: Question, before: Values, isAsked: boolean): Promise<Values> {
  const [name, secretName] = names;
  let known = environment[name] || fallback;
  const toAsk = isAsked && given[0] === undefined;
  const isOptional = need === undefined && fallback === undefined;
  let last: string | undefined;
  for (;;) {
    const typed = toAsk ? await askLine(`${question}${known ? ` [${known}]` : isOptional ? ' (Enter: none)' : ''}: `) : undefined;
    const value = given[0] ?? (typed || known);
    if (value === undefined && need === undefined) return {};
    if (value === undefined && !toAsk) throw new UsageError(`nobody is there to ask: give ${need}`);
    if (value === undefined) {
      note('It is needed: https://service.example, or, for generated people, the address that `ringneck service` prints.');
      continue;
    }
    const values: Values = { [name]: value };
    const secret = secretName && (await findSecret(secretName, given[1], { toAsk, isWrong: last !== undefined }));
    if (secretName && secret) values[secretName] = secret;
    const wrong = await findWrong(check, { ...onlyOurs(environment), ...before, ...values }, name);
    if (wrong === undefined) return values;
    if (!toAsk) throw new RingneckError(`${wrong.said}; nothing was written`, wrong.isUsage ? 2 : 1);
    note(wrong.said);
    // Who knows better, for the service is not there yet, says the same twice.
    const said = JSON.stringify(values);
    if (!wrong.isUsage && last === said) return values;
    if (!wrong.isUsage) {
      note('Enter the same again to keep it.');
      // What may be left out still can be, by Enter.
      if (!isOptional) known = value;
    }
    last = said;
  }
}

/** Undefined: there is none, or a file has it. Throws UsageError. */
async function findSecret(
  name: string,
  given: string | undefined,
  { toAsk, isWrong }: { toAsk: boolean; isWrong: boolean },
): Promise<string | undefined> {
  const file = environment[`${name}_FILE`];
  if (file && given !== undefined)
    throw new UsageError(`${name}_FILE is ${file} already: leave --client-secret-file out, or remove that setting`);
  if (file) return undefined;
  const known = isWrong ? undefined : environment[name];
  return given ?? known ?? (toAsk ? askHidden('Its secret (not shown): ') : undefined);
}

const onlyOurs = (env: NodeJS.ProcessEnv) => Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith('RINGNECK_')));

async function findWrong(
  check: Question['check'],
  env: NodeJS.ProcessEnv,
  name: string,
): Promise<{ said: string; isUsage: boolean } | undefined> {
  try {
    const results = await check(env);
    for (const { check: what, message, state } of results) if (state === 'ok') note(`ok: ${what}: ${message}`);
    for (const { message, fix, state } of results) if (state === 'warn') note(`warning: ${message}: ${fix}`);
    const failed = results.find(({ state }) => state === 'fail');
    return failed && { said: `${name}: ${failed.message}: ${failed.fix}`, isUsage: false };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return { said: error.message, isUsage: true };
  }
}

function readSecret(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new UsageError(`cannot read the client’s secret: ${messageOf(error)}`);
  }
}

/** Asks before anything of the file is replaced. */
async function ensureReplaceable(file: EnvFile, values: Values, { yes, isAsked }: { yes?: true; isAsked: boolean }): Promise<void> {
  const differing = Object.keys(values).filter(name => file.values[name] !== undefined && file.values[name] !== values[name]);
  if (!differing.length || yes) return;
  const what = `${file.path} has another ${differing.join(', ')}`;
  if (!isAsked) throw new UsageError(`${what}: add --yes to replace ${differing.length === 1 ? 'it' : 'them'}; nothing was written`);
  if (!(await askWhether(`${what}. Replace?`))) throw new RingneckError('nothing was written');
}

/** The first account, and its first days. */
async function offerLogin(isAsked: boolean): Promise<void> {
  const { signIn, historyDays } = readSettings(environment);
  if (!isAsked || !signIn) return;
  const name = await askLine('Name for the account of the person who signs in now (Enter: later): ');
  if (!name) return;
  const last = Math.max(1, historyDays);
  const isRead = await askWhether(`Read the last ${last === 1 ? 'day' : `${last} days`} at once?`, { enter: true });
  await logIn(parseAccountName(name), { browser: true, timeout: 300, ...(isRead && { last }) });
}

/** How a person goes on, and what starts `up` with the machine. */
function tellNext(path: string): void {
  const option = path === ENV_FILE ? [] : ['--env-file', resolve(path)];
  // Without the dashes Node takes --env-file for its own.
  const program = [process.execPath, '--', resolve(process.argv[1] ?? 'ringneck')];
  const words = (quote: (word: string) => string, ...rest: string[]) => [...program, ...option, ...rest].map(quote).join(' ');
  const bySystemd = (word: string) =>
    /^[\w./-]+$/.test(word) ? word : `"${word.replaceAll(/[%$]/g, '$&$&').replaceAll(/["\\]/g, '\\$&')}"`;
  const byCron = (word: string) => (/^[\w./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''").replaceAll('%', '\\%')}'`);
  printLines(`
Next:
  ringneck account login NAME      a person signs in; or, with a token: printf %s "$TOKEN" | ringneck account add NAME
  ringneck up                      reads the last days, and keeps the warehouse in step
  ringneck sql                     asks

With systemd, as ~/.config/systemd/user/ringneck.service; then systemctl --user enable --now ringneck, and loginctl enable-linger:
  [Unit]
  Description=Ringneck
  After=network-online.target
  [Service]
  WorkingDirectory=${process.cwd().replaceAll('%', '%%')}
  ExecStart=${words(bySystemd, 'up')}
  Restart=on-failure
  KillMode=mixed
  [Install]
  WantedBy=default.target

With cron, in place of up:
  30 3 * * * cd ${byCron(process.cwd())} && ${words(byCron, 'nightly')}`);
}
