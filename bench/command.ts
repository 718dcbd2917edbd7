import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { killAtExit } from './child.ts';
import { type Folder, settingsOf } from './folder.ts';
import type { Cost } from './task.ts';

export const MAIN = fileURLToPath(new URL('../src/cli/main.js', import.meta.url));
const METER = new URL('./meter.js', import.meta.url).href;

/** Of a `ringneck` command that is measured no setting comes from whoever runs this. */
export const environmentOf = (folder: Folder) => {
  const { PATH, HOME, TMPDIR } = process.env;
  return { PATH, HOME, TMPDIR, ...settingsOf(folder) };
};

/** Runs the real `ringneck` with `--json`: what it says, and what its process cost from its start to its end. */
export async function runCommand<Report>(folder: Folder, ...args: string[]): Promise<{ cost: Cost; report: Report }> {
  const command = spawn(process.execPath, ['--import', METER, MAIN, ...args, '--json'], {
    env: { ...environmentOf(folder), RINGNECK_LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  killAtExit(command);
  const [said, notes, cost, [code]] = await Promise.all([
    text(command.stdout!),
    text(command.stderr!),
    text(command.stdio[3] as Readable),
    once(command, 'exit'),
  ]);
  if (code !== 0) throw new Error(`ringneck ${args.join(' ')} ended with exit code ${code}:\n${notes}${said}`);
  return { cost: JSON.parse(cost) as Cost, report: JSON.parse(said) as Report };
}
