import { Command } from 'commander';
import { version } from '../base/version.ts';
import { addAccount } from './commands/account.ts';
import { addAdopt } from './commands/adopt.ts';
import { addBackfill } from './commands/backfill.ts';
import { addCoverage } from './commands/coverage.ts';
import { addDemo } from './commands/demo.ts';
import { addDescribe } from './commands/describe.ts';
import { addDoctor } from './commands/doctor.ts';
import { addExport } from './commands/export.ts';
import { addNightly } from './commands/nightly.ts';
import { addService } from './commands/service.ts';
import { addSnapshot } from './commands/snapshot.ts';
import { addSql } from './commands/sql.ts';
import { addStatus } from './commands/status.ts';
import { addSubscriptions } from './commands/subscriptions.ts';
import { addTables } from './commands/tables.ts';
import { addUp } from './commands/up.ts';
import { withExample } from './options.ts';

const EXIT_CODES = `
Exit codes: 0 all well, 1 something failed, 2 wrong usage or settings, 75 try later, 130 interrupted.
Settings are environment variables, RINGNECK_SERVICE_URL and RINGNECK_DATA first; docs/settings.md lists them.`;

/** The whole command line, in the order in which a newcomer meets it. */
export function createProgram(): Command {
  const program = new Command('ringneck')
    .description('Ring data in DuckDB: keeps a warehouse in step with a wearable health-data service, and is that service for tests.')
    .version(version)
    .showSuggestionAfterError()
    .exitOverride()
    // As the errors of ours: one line that begins with the program's name.
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'ringneck: ').replace('\n(Did', ' (Did')) })
    .addHelpText('afterAll', EXIT_CODES);
  withExample(program, 'ringneck demo', 'ringneck backfill --help');
  for (const add of [
    addDemo,
    addService,
    addAccount,
    addBackfill,
    addNightly,
    addUp,
    addSubscriptions,
    addStatus,
    addCoverage,
    addTables,
    addDescribe,
    addSql,
    addSnapshot,
    addExport,
    addDoctor,
    addAdopt,
  ])
    add(program);
  return program;
}
