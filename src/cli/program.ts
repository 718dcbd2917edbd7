import { Command } from 'commander';
import { version } from '../base/version.ts';
import { addAccount } from './commands/account.ts';
import { addAdopt } from './commands/adopt.ts';
import { addBackfill } from './commands/backfill.ts';
import { addBackup } from './commands/backup.ts';
import { addConsole } from './commands/console.ts';
import { addCoverage } from './commands/coverage.ts';
import { addDemo } from './commands/demo.ts';
import { addDescribe } from './commands/describe.ts';
import { addDoctor } from './commands/doctor.ts';
import { addExport } from './commands/export.ts';
import { addInit } from './commands/init.ts';
import { addKey } from './commands/key.ts';
import { addLake } from './commands/lake.ts';
import { addMachines } from './commands/machines.ts';
import { addMcp } from './commands/mcp.ts';
import { addNightly } from './commands/nightly.ts';
import { addParticipants } from './commands/participants.ts';
import { addReport } from './commands/report.ts';
import { addRestore } from './commands/restore.ts';
import { addService } from './commands/service.ts';
import { addSnapshot } from './commands/snapshot.ts';
import { addSql } from './commands/sql.ts';
import { addStatus } from './commands/status.ts';
import { addSubscriptions } from './commands/subscriptions.ts';
import { addTables } from './commands/tables.ts';
import { addUp } from './commands/up.ts';
import { addWhy } from './commands/why.ts';
import { withExample } from './options.ts';
import { note } from './terminal/note.ts';

const EXIT_CODES = `
Exit codes: 0 all well, 1 something failed, 2 wrong usage or settings, 75 try later, 130 interrupted.
Settings are environment variables, RINGNECK_SERVICE_URL and RINGNECK_DATA first; docs/settings.md lists them. Those that the environment
does not have are read from .env in the working directory, or from the file that --env-file names.`;

/** What others can read is told at once: what it is about may be why the command ends. */
async function readEnvFile(given: string | undefined, isMade: boolean): Promise<void> {
  const [{ loadEnvFile }, { environment }] = await Promise.all([import('../base/env-file.ts'), import('../base/config.ts')]);
  const access = loadEnvFile(environment, given, isMade);
  if (access) note(`warning: ${access.message}: ${access.fix}`);
}

/** As our own errors: one line that begins with the program's name, and says what to do next. */
const lineOf = (error: string): string =>
  error
    .replace(/^error: /, 'ringneck: ')
    .replace('\n(Did', ' (Did')
    .replace(/( unknown (?:command|option) '.*')(?=\n$)/, '$1: --help shows those there are');

/** The whole command line, in the order in which a newcomer meets it. */
export function createProgram(): Command {
  const program = new Command('ringneck')
    .description('Ring data in DuckDB: keeps a warehouse in step with a wearable health-data service, and is that service for tests.')
    .version(version)
    .option('--env-file <file>', 'read settings from this file, and not from .env in the working directory')
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(lineOf(text)) })
    .addHelpText('afterAll', EXIT_CODES)
    .hook('preAction', async (_, command) => {
      // It has its own settings, whatever else there is.
      if (command.name() !== 'demo') await readEnvFile(program.opts<{ envFile?: string }>().envFile, command.name() === 'init');
    });
  withExample(program, 'ringneck demo', 'ringneck backfill --help');
  for (const add of [
    addDemo,
    addInit,
    addService,
    addAccount,
    addParticipants,
    addBackfill,
    addNightly,
    addUp,
    addConsole,
    addReport,
    addSubscriptions,
    addStatus,
    addWhy,
    addCoverage,
    addTables,
    addDescribe,
    addSql,
    addMcp,
    addSnapshot,
    addExport,
    addBackup,
    addRestore,
    addDoctor,
    addKey,
    addLake,
    addMachines,
    addAdopt,
  ])
    add(program);
  return program;
}
