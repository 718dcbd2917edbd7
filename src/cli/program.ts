import { Command } from 'commander';
import { version } from '../version.ts';
import { addAccount } from './account.ts';
import { addAdopt } from './adopt.ts';
import { addBackfill } from './backfill.ts';
import { addCoverage } from './coverage.ts';
import { addDemo } from './demo.ts';
import { addDescribe } from './describe.ts';
import { addDoctor } from './doctor.ts';
import { addExport } from './export.ts';
import { addNightly } from './nightly.ts';
import { withExample } from './options.ts';
import { addService } from './service.ts';
import { addSnapshot } from './snapshot.ts';
import { addSql } from './sql.ts';
import { addStatus } from './status.ts';
import { addSubscriptions } from './subscriptions.ts';
import { addTables } from './tables.ts';
import { addUp } from './up.ts';

const EXIT_CODES = `
Exit codes: 0 all well, 1 something failed, 2 wrong usage or settings, 75 try later, 130 interrupted.
Settings are environment variables, RINGNECK_SERVICE_URL and RINGNECK_DATA first; the README lists them.`;

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
