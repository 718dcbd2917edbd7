#!/usr/bin/env -S node --
import { setFlagsFromString } from 'node:v8';
import { CommanderError } from 'commander';
import { messageOf, RingneckError, shownMessageOf } from '../base/errors.ts';
import { Interrupted } from '../base/interrupt.ts';
import { createProgram } from './program.ts';
import { note, noteLines } from './terminal/note.ts';

/** What is open so long after the command came to its end is not ours to wait for. */
const LEFT_OPEN_MS = 3_000;

// By itself V8 lets garbage, and the samples that it holds on to, grow to some times what lives: 60 MB more at the peak of a long backfill.
setFlagsFromString('--heap-growing-percent=100');
// A command lives for seconds: much of what V8 optimizes in them does not pay that back. Plain machine code is had at once and costs little.
setFlagsFromString('--always-sparkplug');
setFlagsFromString('--interrupt-budget=400000');

// Whatever we make, DuckDB's files too, is for its owner only.
process.umask(0o077);

// A reader that has seen enough (`| head`) closes our output: no error of ours.
process.stdout.on('error', error => {
  if (codeOf(error) === 'EPIPE') process.exit(process.exitCode ?? 0);
  note(`ringneck: the result cannot be written: ${messageOf(error)}`);
  process.exit(1);
});
// Nobody reads the remarks any more: the work goes on.
process.stderr.on('error', () => undefined);

try {
  await createProgram().parseAsync(withoutComment(process.argv));
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has said what is wrong; 0 is --help and --version.
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else {
    noteLines(`ringneck: ${shownMessageOf(error)}`);
    // What the operating system refuses is no bug of ours: its line says it all.
    if (!(error instanceof RingneckError) && !isOfSystem(error)) noteLines(String(error instanceof Error ? (error.stack ?? error) : error));
    process.exitCode = error instanceof RingneckError ? error.exitCode : 1;
    // What was detached goes on elsewhere; its connection must not keep this process.
    if (error instanceof Interrupted) process.exit();
  }
} finally {
  // A queue's worker whose Redis is away never ends, whatever is closed; an unreferenced timer waits for nobody else.
  setTimeout(() => process.exit(), LEFT_OPEN_MS).unref();
}

/** zsh hands on what stands behind a # at its prompt, as of a line that was pasted. */
function withoutComment(args: readonly string[]): string[] {
  const at = args.indexOf('#');
  return args.slice(0, at < 0 ? undefined : at);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function isOfSystem(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error;
}
