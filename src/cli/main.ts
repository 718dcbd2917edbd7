#!/usr/bin/env node
import { CommanderError } from 'commander';
import { messageOf, RingneckError } from '../errors.ts';
import { remark } from './print.ts';
import { createProgram } from './program.ts';

// Whatever we make, DuckDB's files too, is for its owner only.
process.umask(0o077);

// A reader that has seen enough (`| head`) closes our output: no error of ours.
process.stdout.on('error', error => {
  if ((error as NodeJS.ErrnoException).code === 'EPIPE') process.exit(0);
  throw error;
});

try {
  await createProgram().parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has said what is wrong; 0 is --help and --version.
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else {
    remark(`ringneck: ${messageOf(error)}`);
    if (!(error instanceof RingneckError)) remark(String((error as Error)?.stack ?? error));
    process.exitCode = error instanceof RingneckError ? error.exitCode : 1;
  }
}
